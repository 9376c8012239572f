"""The tests of the attack suite, with their kind and their count at the end of ``make attack``."""

from collections import Counter

import pytest

# Prefixes of node ids: a file or one test of it. The first match counts.
KINDS = {
    "tests/workspaces/documents/test_own.py": "isolation",
    "tests/memories/test_secret_": "secrets",
    "tests/memories/judging/test_secret_": "secrets",
    "tests/memories/forgetting/test_secret_scan.py": "secrets",
    "tests/memories/writing/test_refusal_counts.py": "secrets",
    "tests/chat/turns/test_injection.py": "injections",
    "tests/chat/turns/test_pictures.py::test_only_the_pixels": "oversized and malformed",
    "tests/chat/turns/test_pictures.py::test_only_the_newest": "isolation",
    "tests/chat/turns/test_pictures.py::test_members": "isolation",
    "tests/chat/turns/test_role_aware.py": "injections",
    "tests/chat/views/test_xss.py": "XSS",
    "tests/chat/chats/test_sharing.py::test_tokens": "guessing",
    "tests/chat/chats/test_sharing.py::test_what_the_answer": "headers and paths",
    "tests/chat/chats/test_sharing.py": "isolation",
    "tests/chat/chats/test_rating_and_tags.py::test_staff": "isolation",
    "tests/chat/chats/test_rating_and_tags.py::test_a_rating": "oversized and malformed",
    "tests/chat/runs/test_views.py::test_the_pages": "XSS",
    "tests/chat/runs/test_views.py::test_hostile": "oversized and malformed",
    "tests/chat/runs/test_views.py::test_a_stranger": "isolation",
    "tests/chat/runs/test_outsiders.py::test_of_two": "races",
    "tests/chat/runs/test_outsiders.py": "oversized and malformed",
    "tests/chat/runs/test_web.py::test_no_page_of": "headers and paths",
    "tests/chat/runs/test_web.py::test_malformed": "oversized and malformed",
    "tests/chat/runs/test_web.py::test_page": "headers and paths",
    "tests/chat/runs/test_web.py::test_endless": "headers and paths",
    "tests/chat/runs/test_citing.py::test_nothing": "isolation",
    "tests/chat/runs/test_reports.py::test_statement": "injections",
    "tests/chat/runs/test_reports.py::test_the_run": "isolation",
    "tests/chat/runs/test_reports.py::test_copies": "isolation",
    "tests/chat/runs/test_runs.py::test_hostile": "oversized and malformed",
    "tests/chat/runs/test_plan_edits.py::test_long_form": "oversized and malformed",
    "tests/chat/runs/test_plan_edits.py::test_row": "oversized and malformed",
    "tests/chat/modes/test_research.py::test_the_plan_in": "isolation",
    "tests/chat/runs/test_templates.py::test_nobody": "isolation",
    "tests/chat/runs/test_forgetting.py::test_personal": "guessing",
    "tests/chat/runs/test_runs.py::test_personal": "isolation",
    "tests/chat/runs/test_runs.py::test_who_may": "isolation",
    "tests/test_xss_everywhere.py": "XSS",
    "tests/chat/test_stored_html.py::test_no_markdown": "text made to be slow",
    "tests/chat/test_stored_html.py::test_no_code": "text made to be slow",
    "tests/chat/test_stored_html.py::test_parsing_stops": "text made to be slow",
    "tests/chat/test_stored_html.py::test_a_wide": "text made to be slow",
    "tests/chat/test_stored_html.py::test_a_long": "text made to be slow",
    "tests/chat/test_stored_html.py::test_a_page_of": "text made to be slow",
    "tests/workspaces/invitations/test_invitations.py::test_nobody_forges": "keys",
    "tests/workspaces/invitations/test_invitations.py::test_nobody_but": "isolation",
    "tests/workspaces/accounts/test_first_account.py::test_nobody_is_who": "headers and paths",
    "tests/workspaces/accounts/test_first_account.py::test_no_page": "CSRF",
    "tests/workspaces/accounts/test_first_account.py::test_of_two": "races",
    "tests/workspaces/connections/test_connecting.py::test_nobody": "isolation",
    "tests/workspaces/connections/test_connecting.py::test_hostile": "oversized and malformed",
    "tests/workspaces/connections/test_connecting.py::test_for_whom": "isolation",
    "tests/workspaces/connections/test_local_servers.py::test_nobody": "isolation",
    "tests/workspaces/connections/test_local_servers.py::test_nothing_that": "headers and paths",
    "tests/workspaces/connections/test_local_servers.py::test_what_speaks": "oversized and malformed",
    "tests/chat/saved_prompts/test_saved_prompts.py::test_whose": "isolation",
    "tests/chat/saved_prompts/test_saved_prompts.py::test_what_is_typed": "XSS",
    "tests/workspaces/invitations/test_invitations.py::test_two": "races",
    "tests/test_attacks.py::test_forged": "CSRF",
    "tests/test_attacks_ids.py": "IDOR",
    "tests/chat/programs/test_brought_in.py::test_it_waits": "injections",
    "tests/chat/programs/test_brought_in.py::test_what_an_earlier": "injections",
    "tests/chat/programs/test_bad_servers.py": "oversized and malformed",
    "tests/chat/programs/test_addresses.py::test_invalid_number": "oversized and malformed",
    "tests/chat/programs/test_many_at_once.py": "exhaustion",
    "tests/chat/programs/test_mcp.py::test_lost_key": "keys",
    "tests/chat/programs/test_openai_api.py::test_lost_key": "keys",
    "tests/chat/programs/test_hostile.py": "oversized and malformed",
    "tests/chat/programs/test_mcp.py::test_each_tool": "isolation",
    "tests/test_access_of_tokens.py": "isolation",
    "tests/chat/programs/test_mcp_cancelling.py::test_posted": "isolation",
    "tests/workspaces/oauth/test_endings.py": "keys",
    "tests/workspaces/webhooks/test_leaving.py": "isolation",
    "tests/chat/programs/test_mcp.py::test_request_without": "keys",
    "tests/test_attacks.py::test_form": "mass assignment",
    "tests/test_attacks.py": "headers and paths",
    "tests/memoryhub/test_api_hostile_input.py::test_ids": "IDOR",
    "tests/memoryhub/test_api_hostile_input.py::test_hostile_addresses": "headers and paths",
    "tests/memoryhub/test_api_hostile_input.py": "oversized and malformed",
    "tests/test_api_fuzz": "oversized and malformed",
    "tests/memoryhub/test_body_limit.py::test_what": "oversized and malformed",
    "tests/memoryhub/test_body_limit.py": "exhaustion",
    "tests/workspaces/test_event_streams.py": "exhaustion",
    "tests/test_access_matrix.py": "isolation",
    "tests/test_access_of_streams.py": "isolation",
    "tests/test_isolation.py": "isolation",
    "tests/chat/test_personal.py": "isolation",
    "tests/memories/forgetting/test_forgetting_races.py": "races",
    "tests/memories/test_forgetting_guesses.py": "guessing",
    "tests/chat/prompting/test_provenance.py": "guessing",
    "tests/chat/turns/test_provenance_routes.py": "injections",
    "tests/chat/test_other_chats.py": "isolation",
    "tests/chat/test_personal_answers.py": "isolation",
    "tests/chat/programs/test_personal_memories.py": "isolation",
    "tests/chat/test_whose_words.py": "names that pass for others",
    "tests/chat/import_export/test_imported_marks.py": "names that pass for others",
    "tests/workspaces/documents/test_drafts.py": "isolation",
    "tests/workspaces/invitations/test_invited.py": "isolation",
    "tests/chat/turns/test_left_behind.py": "isolation",
    "tests/memories/test_copy_notes.py": "isolation",
    "tests/chat/import_export/test_forget_in_imports.py::test_hostile": "oversized and malformed",
    "tests/chat/import_export/test_forget_in_imports.py": "isolation",
    "tests/chat/import_export/test_exchange_artifacts.py::test_hostile": "oversized and malformed",
    "tests/chat/import_export/test_exchange_artifacts.py::test_nobody": "isolation",
    "tests/chat/chats/test_save_as_artifact.py::test_a_person": "secrets",
    "tests/workspaces/artifacts/test_artifacts.py::test_what_looks": "secrets",
    "tests/memories/writing/test_versions.py": "races",
    "tests/memories/test_keys.py::test_two": "races",
    "tests/memories/test_keys.py::test_a_key_taken_past": "races",
    "tests/memories/test_keys.py::test_what_is_known_goes": "races",
    "tests/test_empty_changes.py": "oversized and malformed",
    "tests/test_api_idempotency.py": "races",
    "tests/test_api_paging.py": "races",
    "tests/memories/assets/test_assets_api.py": "uploads",
    "tests/workspaces/documents/test_reading_hostile.py": "uploads",
    "tests/workspaces/accounts/test_pictures.py::test_what": "uploads",
    "tests/workspaces/artifacts/test_artifacts.py::test_pages": "XSS",
    "tests/workspaces/artifacts/test_artifacts.py::test_a_page": "XSS",
    "tests/workspaces/artifacts/test_artifacts.py::test_nothing": "XSS",
    "tests/workspaces/artifacts/test_artifacts.py::test_what_is_personal": "isolation",
    "tests/workspaces/artifacts/test_artifacts.py::test_comparing": "text made to be slow",
    "tests/chat/chats/test_finding.py::test_nobody": "isolation",
    "tests/functional/test_artifacts.py::test_hostile_artifact": "XSS",
    "tests/memories/admin/test_admin_actions.py": "staff beyond their rights",
    "tests/workspaces/test_admin.py::test_staff": "staff beyond their rights",
    "tests/workspaces/test_admin.py::test_addresses": "staff beyond their rights",
    "tests/test_staff.py": "staff beyond their rights",
    "tests/workspaces/test_powers.py": "staff beyond their rights",
    "tests/workspaces/test_usernames.py": "names that pass for others",
    "tests/workspaces/test_reset_links.py": "secrets",
    "tests/workspaces/test_throttles.py": "guessing",
    "tests/workspaces/accounts/test_keys.py": "keys",
    "tests/workspaces/scim/test_scim.py::test_what_no": "oversized and malformed",
    "tests/workspaces/scim/test_groups.py::test_what_no": "oversized and malformed",
    "tests/workspaces/scim/test_scim.py::test_a_wrong": "guessing",
    "tests/workspaces/scim/test_scim.py::test_a_superuser": "keys",
    "tests/workspaces/scim/test_scim.py::test_first": "keys",
    "tests/workspaces/oauth/test_attacks.py::test_a_flood": "exhaustion",
    "tests/workspaces/oauth/test_attacks.py::test_hostile": "oversized and malformed",
    "tests/workspaces/oauth/test_attacks.py::test_a_malformed": "oversized and malformed",
    "tests/workspaces/oauth/test_attacks.py::test_of_two": "races",
    "tests/workspaces/oauth/test_attacks.py": "keys",
    "tests/memoryhub/test_middleware.py": "headers and paths",
    "tests/memoryhub/test_request_origin.py": "headers and paths",
    "tests/memoryhub/test_production.py": "headers and paths",
    "tests/workspaces/webhooks/test_holding_up.py": "exhaustion",
    "tests/workspaces/webhooks/test_webhooks.py::test_addresses": "addresses inside",
    "tests/workspaces/webhooks/test_webhooks.py::test_personal": "isolation",
    "tests/workspaces/webhooks/test_webhooks.py::test_owners": "isolation",
    "tests/memoryhub/llm/test_metadata.py": "addresses inside",
    "tests/memoryhub/llm/test_addresses.py": "addresses inside",
    "tests/memoryhub/test_model_files.py": "altered files",
    "tests/workspaces/test_quotas.py": "over a quota",
    "tests/test_requirements.py::test_pip": "altered files",
}
_outcomes: dict[str, Counter[str]] = {}


def kind_of(node_id: str) -> str | None:
    return next((kind for beginning, kind in KINDS.items() if node_id.startswith(beginning)), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attacks", action="store_true", help="only the attack suite, with counts by kind")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--attacks"):
        others = [item for item in items if kind_of(item.nodeid) is None]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if kind_of(item.nodeid) is not None]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    kind = kind_of(report.nodeid)
    if kind and (report.when == "call" or report.failed):
        _outcomes.setdefault(kind, Counter())["withstood" if report.passed else report.outcome] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--attacks"):
        return
    terminalreporter.section("attacks by kind")
    for kind, counts in sorted(_outcomes.items()):
        said = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items(), reverse=True))
        terminalreporter.write_line(f"{kind:>25}: {said}")
