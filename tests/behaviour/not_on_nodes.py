"""Scenarios of `behaviour` that are left out on two nodes, and why each cannot hold there."""

from typing import Final

_SET: Final = "each node has its own running set, and the tool changes only one of them"
_PLACES: Final = "places for calls bound one process"
_OLDER: Final = "the next look, at another node, may show an older state of the task"

NOT_ON_NODES: Final = {
    "test_a_burst_is_two_notices": "another node hears of a whole burst at once: one notice",
    "test_a_call_outlives_its_skill": _SET,
    "test_a_change_within_the_handshake_is_sent_at_its_end": _SET,
    "test_a_declared_list_offers_what_comes_later": _SET,
    "test_a_duplicate_id_in_flight_is_refused": "each node knows only its own requests in flight",
    "test_a_removed_tool_is_unknown": _SET,
    "test_a_server_that_decides": "each server notes only what its own node was asked",
    "test_a_session_hears_of_every_kind_of_change": _SET,
    "test_a_skill_appears_changes_and_vanishes": _SET,
    "test_a_storm": _SET,
    "test_a_wrong_answer_is_asked_again_under_another_key": _OLDER,
    "test_bursts_are_merged": _SET,
    "test_init_runs_before_any_request_and_ping_does_not_wait": "`init` has a gate per node",
    "test_max_concurrency_queues_calls": _PLACES,
    "test_notices_of_a_mounted_server": _SET,
    "test_places_are_shared": _PLACES,
    "test_requests_in_flight_are_bounded": "the limit of requests in flight bounds one process",
    "test_requests_wait_for_the_handshake": "other nodes serve a session right after `initialize`",
    "test_some_answers_at_a_time": _OLDER,
    "test_the_running_set": _SET,
    "test_what_was_offered_once_stays_offered": _SET,
}
