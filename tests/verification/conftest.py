"""An installation of real processes, shared by the tests without settings of their own."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.fakes.openai_server import ScriptedOpenAI
from tests.fakes.otlp import Receiver
from tests.stack import Stack, Web, running_stack

TOKEN = "of the monitoring alone"
TURN_RATE = 4


@dataclass
class Hub:
    """Database, scripted model, trace collector, and the web processes that no test has killed so far."""

    stack: Stack
    model: ScriptedOpenAI
    collector: Receiver
    _webs: list[Web] = field(default_factory=list)

    def webs(self, number: int) -> list[Web]:
        """Return this many running web processes, started if necessary."""
        self._webs[:] = [web for web in self._webs if web.process.poll() is None]
        while len(self._webs) < number:
            self._webs.append(self.stack.web())
        return self._webs[:number]

    def web(self) -> Web:
        return self.webs(1)[0]

    def end_the_rest(self) -> None:
        """Kill all other processes that a test has started."""
        kept = [web.process for web in self._webs]
        for process in self.stack.processes:
            if process not in kept and process.poll() is None:
                self.stack.kill(process)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    model, collector = ScriptedOpenAI().start(), Receiver()
    folder = tmp_path_factory.mktemp("hub")
    (folder / "metrics").mkdir()
    env = {
        "MEMORYHUB_LLM_BASE_URL": model.base_url,
        "MEMORYHUB_LLM_API_KEY": model.api_key,
        "MEMORYHUB_LLM_MODEL": model.model,
        "MEMORYHUB_EMBEDDING_MODEL": "none",
        "MEMORYHUB_METRICS_TOKEN": TOKEN,
        "MEMORYHUB_TURN_RATE": str(TURN_RATE),
        "MEMORYHUB_JOB_TIMEOUT": "6",  # a killed worker's job is repeated after eight seconds
        "MEMORYHUB_WORKERS": "1",
        "MEMORYHUB_LOG_FORMAT": "json",
        "MEMORYHUB_LOG_LEVEL": "DEBUG",
        "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "1000",
    }
    with running_stack(folder, durable=True, **env) as stack:
        yield Hub(stack, model, collector)
    model.release()
    model.stop()
    collector.stop()


@pytest.fixture
def hub(installation: Hub) -> Iterator[Hub]:
    """The installation with a reset model, and no worker but the test's own."""
    installation.model.unscript()
    installation.model.requests.clear()
    yield installation
    installation.model.release()
    installation.end_the_rest()
