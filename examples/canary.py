"""A canary from 1 % to 100 %, offline: first a faulty `auto` that is rolled back, then a clean one that completes.

    python examples/canary.py [REPORT.html]

Users, models and time are simulated, so that days pass in seconds; the assignment, the store, the judge and the report
are the real ones. A fleet does the same with `zlclient.chat(prompt, experiment="support-bot", unit=user_id)`.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from zlclient.routing.judge import change_state
from zlclient.routing.report import render_html, summarise
from zlclient.routing.rollouts import parse_rollouts
from zlclient.routing.router import Router
from zlclient.routing.stores import open_store

NAME = "support-bot"
ROLLOUTS = {
    NAME: {
        "control": "legacy",
        "treatment": "auto",
        "unit": "user_id",
        "stages": [1, 10, 50, 100],
        "gates": {"error_rate": "< 2%", "ttft_p50": "<= 200 ms", "fcr": ">= control - 20 pp"},
        "advance": "auto",
        "interval": "10 min",
        "breaker": False,
    }
}
USERS = 100_000
REQUESTS_A_MINUTE = 100


class World:
    """Simulated time and models."""

    def __init__(self) -> None:
        self.now = time.time() - 2 * 86_400
        self.faulty = True
        self._random = random.Random(20)

    def clock(self) -> float:
        return self.now

    def user(self) -> str:
        return f"user-{self._random.randrange(USERS)}"

    def answer(self, arm: str) -> tuple[str | None, float, bool]:
        """(error, seconds to the first token, whether the user was helped)."""
        chance = self._random.random
        if chance() < (0.08 if self.faulty and arm == "auto" else 0.002):
            return "ServerError", 0.0, False
        median = 0.150 if arm == "auto" else 0.180
        return None, median * self._random.lognormvariate(0, 0.4), chance() < 0.75


def serve(router: Router, world: World) -> str:
    """Traffic until the rollout is over, printing each move of the judge; how it ended."""
    told, begin = len(router.store.history(NAME)), world.now
    while True:
        for number in range(10 * REQUESTS_A_MINUTE):
            decision = router.assign(NAME, unit=world.user())
            error, ttft, helped = world.answer(decision.arm)
            reply_id = f"reply-{world.now:.0f}-{number}"
            router.record(decision, reply_id, error_type=error, ttft_s=None if error else ttft)
            if decision.in_experiment:
                router.outcome(reply_id, "resolved", helped)
        world.now += 600
        router.step()
        router.step()  # the second sees what the first one's judge decided
        for event in router.store.history(NAME)[told:]:
            print(f"  {(world.now - begin) / 3600:5.1f} h  {event.action:<9} {event.reason}")
            told += 1
        state = router.state(NAME)
        if state and state.status in {"completed", "rolled_back"}:
            return state.status


def main() -> None:
    plan, world = parse_rollouts(ROLLOUTS), World()
    with TemporaryDirectory() as folder:
        router = Router(plan, open_store(f"sqlite:///{folder}/rollouts.db"), clock=world.clock, background=False)
        router.step()

        print("auto fails 8 % of its requests:")
        assert serve(router, world) == "rolled_back"
        assert {router.assign(NAME, unit=f"user-{i}").arm for i in range(1_000)} == {"legacy"}

        print("auto is mended, and tried again:")
        world.faulty = False
        state = router.state(NAME)
        assert state
        change_state(router.store, plan[NAME], state, "restart", world.now, "you", "the fault is mended")
        router.step()
        assert serve(router, world) == "completed"
        assert {router.assign(NAME, unit=f"user-{i}").arm for i in range(1_000)} == {"auto"}

        if len(sys.argv) > 1:
            Path(sys.argv[1]).write_text(render_html(summarise(plan[NAME], router.store, world.now)), "utf-8")
            print(f"wrote {sys.argv[1]}")
        router.close()


if __name__ == "__main__":
    main()
