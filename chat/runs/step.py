"""A step of a run: the model and its tools are called in turn, until the step finishes or its rounds are used up.

Messages are stored in a transcript. A restarted step continues after the last stored message, so that no reply is
requested twice and no call with a stored result is repeated. In the prompt, a caller's instructions come before the
fixed rules and never replace them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from chat.prompting.context import tokens_of, tokens_of_tools
from chat.prompting.prompt_text import BYTES_PER_TOKEN, cut_to, one_line, prompt_text, tokens
from chat.runs.budget import CONCLUDE_AT, SPENT, Budget
from chat.runs.plan import PlannedStep, fitted, troubles_with
from chat.runs.run_entries import MemoryKind, RunEntries, memory_keys
from chat.runs.run_memory_tools import LONGEST_RESULT, StepTool, memory_tools
from chat.tools.base import ToolTrouble
from memoryhub.errors import DomainError
from memoryhub.llm.base import Message, Speaker, Tool, ToolCall
from memoryhub.llm.output_parsing import repaired_object
from memoryhub.stored_messages import kept

FINISH = "finish_step"
LONGEST_REPAIRED, DEEPEST = 50_000, 12  # limits for repairing invalid JSON: characters, levels


def user_message(instructions: str, keys: Sequence[str], memory: RunEntries) -> str:
    """Return the step's instructions and the keys and titles of its inputs. The model reads the values with a tool."""
    if not keys:
        return instructions
    titles = memory.titles(keys)
    lines = [f"- {key} — {title}" if (title := one_line(titles.get(key, ""))) else f"- {key}" for key in keys]
    return "\n".join([instructions, "", "# Builds on (`memory_read` these)", *lines])


def finish_tool(schema: object) -> Tool:
    return Tool(
        FINISH,
        "End with the result.",
        {"type": "object", "properties": {"result": schema}, "required": ["result"]},
    )


def result_in(arguments: str, schema: Any) -> Any:
    """Return the result from arguments of ``finish_step``, repaired and adapted to the schema. Raises ValueError."""
    parsed_arguments = _arguments(arguments)
    if isinstance(parsed_arguments, dict) and "result" in parsed_arguments:
        return fitted(parsed_arguments["result"], schema)
    if parsed_arguments and "result" not in (schema.get("properties") or {}):
        return fitted(parsed_arguments, schema)
    raise ValueError("“result” is missing")


def _arguments(text: str) -> dict[str, Any] | list[Any]:
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        start = text.find("{")
        repair_result = (
            repaired_object(text, start, longest=LONGEST_REPAIRED, deepest=DEEPEST) if start >= 0 else None
        )
        if repair_result is None:
            raise ValueError("the arguments are not valid JSON") from None
        arguments = repair_result[0]
    return arguments if isinstance(arguments, dict | list) else {}


RETRIES = 3  # requests for a corrected result
MOST_CALLS = 8  # calls per round
LEAST_RESULT = 200  # tokens of a tool result that are always kept
LONGEST_PLAIN = 60_000  # characters of a plain text result
INTERRUPTED = "Error: this call was interrupted, and may have had its effect. Check before you repeat it."
NOT_FINISHED = kept("The model couldn't finish this step. Try again or use a stronger model.")
MISFIT = kept("The model's results for this step did not have the required form.")
ONLY_FINISH = "Error: not done, little of the budget is left. Finish now with what you have."


@dataclass(frozen=True)
class Reply:
    text: str
    calls: tuple[ToolCall, ...] = ()


class Ask(Protocol):
    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        """Return the model's next reply. Without ``may_call``, tools are listed but not called. Raises ModelError."""
        ...


@dataclass
class Transcript:
    """All messages of a step after its prompt. ``save`` stores the transcript."""

    messages: list[Message] = field(default_factory=list)
    rounds: int = 0
    invalid: int = 0  # results that the model had to correct
    concluding: bool = False
    begun: str = ""  # the id of the tool call that was started last and may not have finished
    save: Callable[[], None] = lambda: None

    def as_json(self) -> dict[str, Any]:
        field_names = ("rounds", "invalid", "concluding", "begun")
        return {
            "messages": [asdict(message) for message in self.messages],
            **{name: getattr(self, name) for name in field_names},
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Transcript:
        messages = []
        for message in fields.pop("messages", ()):
            calls = tuple(ToolCall(**call) for call in message.pop("tool_calls"))
            speaker = Speaker(message.pop("speaker", None) or Speaker.RUN)  # stored before speakers existed
            messages.append(Message(**message, tool_calls=calls, speaker=speaker))
        return cls(messages, **fields)

    def unanswered(self) -> list[ToolCall]:
        """Return the calls of the last reply that have no result yet."""
        answered = {message.tool_call_id for message in self.messages if message.role == "tool"}
        last = next((reply for reply in reversed(self.messages) if reply.role == "assistant"), None)
        return [call for call in (last.tool_calls if last else ()) if call.id not in answered]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a step."""

    ok: bool
    value: Any = None
    error: str = ""
    spent: str = ""  # the limit of the budget that is used up; the step is then neither done nor failed
    released: str = ""  # a teammate's reason for giving the task back


class Released(Exception):
    """Raised by the tool with which a teammate gives its task back to the team."""


@dataclass(frozen=True)
class StepContext:
    """The environment of a step: memory, model, tools and budget."""

    memory: RunEntries
    ask: Ask
    tools: tuple[StepTool, ...] = ()
    preamble: str = ""  # put before the fixed rules of the prompt
    budget: Budget = field(default_factory=Budget)
    room: int = 16_000  # the maximum tokens of a prompt
    in_team: bool = False  # adds the rules for teams
    # Receives events, which contain no texts.
    emit: Callable[[str, dict[str, Any]], None] = lambda kind, data: None


@dataclass(frozen=True)
class Unit:
    """The work of one worker at a time: a step, one item of a step, or a teammate's task."""

    step: PlannedStep
    task_id: str = ""
    task_title: str = ""
    upstream: tuple[str, ...] = ()  # keys of the entries that the step may read as its inputs
    finishes_task: bool = False
    of: str = ""  # the step whose item this is
    member: str = ""


class StepExecutor:
    """The executor of one step, which calls the model and its tools until the step ends.

    ``check`` returns the error of a result that matches the schema but is wrong for another reason, or "".
    """

    def __init__(
        self,
        unit: Unit,
        context: StepContext,
        *,
        transcript: Transcript | None = None,
        check: Callable[[Any], str] = lambda result: "",
    ) -> None:
        self.unit, self.context = unit, context
        self.step = step = unit.step
        self.transcript = transcript or Transcript()
        self._check = check
        self._keys = list(dict.fromkeys([*map(memory_keys.step, step.depends_on), *unit.upstream]))
        on_access = self._record_access
        own = memory_tools(context.memory, source=step.id, on_access=on_access, room=self._result_byte_limit)
        self.tools = {tool.name: tool for tool in (*own, *context.tools)}
        self._prompt: list[Message] = []
        self._finish = None if step.schema is None else finish_tool(step.schema)

    def execute(self) -> Outcome:
        """Run the step to its end. Raises ModelError if the model fails; earlier work stays in the transcript."""
        self._prompt = self.prompt()
        while True:
            if outcome := self._process_reply():
                return outcome
            if self.transcript.rounds >= self.context.budget.limits.step_rounds:
                return self._fail(NOT_FINISHED)
            if spent := self.context.budget.what_is_spent:
                return Outcome(False, error=SPENT[spent], spent=spent)
            self._next_reply()

    def prompt(self) -> list[Message]:
        parts = [self.context.preamble.strip(), prompt_text("run_step")]
        if self.context.in_team:
            parts.append(prompt_text("run_team"))
        parts.append(prompt_text("run_finish_plain" if self.step.schema is None else "run_finish"))
        if self.unit.finishes_task:
            parts.append(prompt_text("run_finish_task"))
        user_text = user_message(self.step.instructions, self._keys, self.context.memory)
        return [
            Message("system", "\n\n".join(filter(None, parts)), speaker=Speaker.SYSTEM),
            Message("user", user_text, speaker=Speaker.RUN),
        ]

    def _next_reply(self) -> None:
        log = self.transcript
        is_last = log.rounds + 1 == self.context.budget.limits.step_rounds
        if not log.concluding and (is_last or self._is_tight()):
            log.concluding = True
            log.messages.append(Message("user", prompt_text("run_conclude"), speaker=Speaker.SYSTEM))
            log.save()
        messages, offered = [*self._prompt, *log.messages], self.offered()
        may_call = not log.concluding or self._finish is not None
        reply = self.context.ask(messages, offered, may_call=may_call)
        log.rounds += 1
        known = {call.id for message in log.messages for call in message.tool_calls}
        calls = tuple(
            ToolCall(f"{call.id}_{log.rounds}" if call.id in known else call.id, call.name, call.arguments)
            for call in reply.calls[:MOST_CALLS]
        )
        log.messages.append(Message("assistant", reply.text, calls, speaker=Speaker.MODEL))
        out = tokens(reply.text, *(call.arguments for call in reply.calls))
        spent_in = tokens_of(messages) + tokens_of_tools(offered)
        self.context.budget.spend(spent_in, out)
        self.context.emit("reply", {"round": log.rounds, "tokens_in": spent_in, "tokens_out": out})

    def offered(self) -> list[Tool]:
        """Return the tools for the next reply."""
        finish = [self._finish] if self._finish else []
        if self.transcript.concluding and finish:
            return finish
        return [*(tool.tool for tool in self.tools.values()), *finish]

    def _is_tight(self) -> bool:
        is_long = self._tokens_used() > CONCLUDE_AT * self.context.room
        return is_long or self.context.budget.is_nearly_spent

    def _tokens_used(self) -> int:
        return tokens_of([*self._prompt, *self.transcript.messages])

    def _process_reply(self) -> Outcome | None:
        """Process the model's last reply, and return the outcome if the step is over.

        Tool calls without a result are run; the reply is stored first. Plain text ends only a step without a schema.
        """
        last = self.transcript.messages[-1] if self.transcript.messages else None
        if last is not None and last.role == "assistant":
            if any(call.name != FINISH or self._finish is None for call in last.tool_calls):
                self.transcript.save()
            if not last.tool_calls:
                return self._read_words(last.content.strip())
        for call in self.transcript.unanswered():
            if outcome := self._answer(call):
                return outcome
        return None

    def _read_words(self, text: str) -> Outcome | None:
        if self._finish is None and text:
            return self._finished(text[:LONGEST_PLAIN])
        wanted = "Call `finish_step` with the result." if self._finish else "Answer with the result."
        return self._request_correction(Message("user", wanted, speaker=Speaker.SYSTEM))

    def _request_correction(self, correction: Message) -> Outcome | None:
        """Tell the model to correct its result, or return a failed outcome after RETRIES corrections."""
        if self.transcript.invalid >= RETRIES:
            return self._fail(MISFIT)
        self.transcript.invalid += 1
        self.transcript.messages.append(correction)
        self.transcript.save()
        return None

    def _tokens_for_result(self) -> int:
        """Return how many tokens of a tool result fit into the prompt."""
        return max(LEAST_RESULT, self.context.room - self._tokens_used())

    def _result_byte_limit(self) -> int:
        """Return how many bytes of a tool result fit into the prompt, for tools whose result must not be cut."""
        return min(LONGEST_RESULT, int((self._tokens_for_result() - 8) * BYTES_PER_TOKEN))

    def _answer(self, call: ToolCall) -> Outcome | None:
        """Run one tool call and store its result. Return the step's outcome if the call ends the step, else None."""
        if self._finish and call.name == FINISH:
            return self._try_to_finish(call)
        try:
            result = self._result_of(call)
        except Released as released:
            return Outcome(False, released=str(released) or kept("No reason was given."))
        shown = cut_to(result[:LONGEST_RESULT], self._tokens_for_result())
        tool = self.tools.get(call.name)
        speaker = tool.speaker if tool else Speaker.SYSTEM
        self.transcript.messages.append(Message("tool", shown, tool_call_id=call.id, speaker=speaker))
        self.transcript.begun = ""
        self.transcript.save()
        return None

    def _result_of(self, call: ToolCall) -> str:
        """Run a call and return its result. For a failed call, the result tells the model what to do."""
        if self.transcript.concluding:
            return ONLY_FINISH
        tool = self.tools.get(call.name)
        if tool is None:
            return f"Error: there is no tool of this name; there are {', '.join(self.tools)}."
        if not tool.is_repeatable:
            if self.transcript.begun == call.id:
                return INTERRUPTED
            self.transcript.begun = call.id
            self.transcript.save()
        try:
            result, ok = tool.call(call.arguments, f"{self.step.id}:{call.id}"), True
        except (ToolTrouble, DomainError) as error:
            result, ok = f"Error: {str(error).rstrip('.')}.", False
        self.context.emit("tool", {"name": tool.name, "ok": ok})
        return result

    def _try_to_finish(self, call: ToolCall) -> Outcome | None:
        assert self.step.schema is not None, "only a step with a schema is offered it"
        try:
            result = result_in(call.arguments, self.step.schema)
            wrong = troubles_with(result, self.step.schema) or self._check(result)
        except ValueError as error:
            wrong = str(error)
        if not wrong:
            return self._finished(result)
        again = f"Error: {wrong}. Call it again."
        return self._request_correction(Message("tool", again, tool_call_id=call.id, speaker=Speaker.SYSTEM))

    def _finished(self, result: Any) -> Outcome:
        self._write(result)
        if self.unit.finishes_task:
            about = {"source": self.unit.task_id, "title": self.unit.task_title or None}
            key = memory_keys.task(self.unit.task_id)
            self.context.memory.set(key, MemoryKind.TASK_RESULT, result, **about)
        return Outcome(True, result)

    def _fail(self, error: str) -> Outcome:
        self._write({"error": error})
        return Outcome(False, error=error)

    def _write(self, value: Any) -> None:
        about = {"source": self.step.id, "title": self.unit.task_title or None}
        self.context.memory.set(memory_keys.step(self.step.id), MemoryKind.STEP_RESULT, value, **about)

    def _record_access(self, operation: str, data: dict[str, Any]) -> None:
        self.context.emit("memory", {"op": operation, "step": self.step.id, **data})
