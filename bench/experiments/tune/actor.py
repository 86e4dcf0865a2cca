"""Trains one trial in an actor that Tune makes: it reports how far it is after an iteration, or several."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.experiments.tune.training import Config, IterationReport, TrainingSettings


def trainable() -> Any:
    """The class of Tune's trials. Made here, since it inherits from what is imported late."""
    import ray
    from ray import tune

    class TrialActor(tune.Trainable):  # type: ignore[misc]
        def setup(
            self,
            config: dict[str, Any],
            images: list[Any],
            training: TrainingSettings,
            silent_seconds: float,
            is_empty: bool,
        ) -> None:
            self._images, self._settings, self._silent_seconds, self._is_empty = (
                images,
                training,
                silent_seconds,
                is_empty,
            )
            self._node = ray.get_runtime_context().get_node_id()
            self.reset_config(config)

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            # TensorFlow is not imported here: while an actor starts, Tune gives its trial to another one that is done,
            # and ends it. The slower node would then import TensorFlow again and again and never get a trial.
            self._config = Config(**new_config.get("trial", new_config))
            self._training: Any = None
            return True

        def begun(self) -> Any:
            from bench.experiments.tune.training import Training

            if self._training is None:
                self._training = Training(self._config, ray.get(self._images[0]), self._settings)
            return self._training

        def step(self) -> dict[str, Any]:
            if self._is_empty:
                return {
                    "accuracy": 1.0,
                    "done": True,
                    "reports": [asdict(_nothing_learnt(time.monotonic(), self._node))],
                }
            training = self.begun()
            reports = [training.iterate()]
            while not training.is_done(reports[-1]) and reports[-1].end - reports[0].begin < self._silent_seconds:
                reports.append(training.iterate())
            return {
                "accuracy": reports[-1].accuracy(self._settings.judged_by),
                "done": training.is_done(reports[-1]),
                "reports": [{**asdict(report), "node": self._node} for report in reports],
            }

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            import pickle

            (Path(checkpoint_dir) / "state.pickle").write_bytes(pickle.dumps(self.begun().state()))

        def load_checkpoint(self, checkpoint: Any) -> None:
            import pickle

            state = pickle.loads((Path(checkpoint) / "state.pickle").read_bytes())  # noqa: S301, written above
            self.begun().go_on_from(state)

    return TrialActor


def _nothing_learnt(now: float, node: str) -> IterationReport:
    return IterationReport(
        iteration=1,
        training_accuracy=0.0,
        held_out_accuracy=0.0,
        loss=0.0,
        cpu_seconds=0.0,
        begin=now,
        end=now,
        peak_memory_bytes=0,
        setup_seconds=0.0,
        node=node,
        process=os.getpid(),
    )
