"""What TensorBoard itself finds in the event files of a run: check_tensorboard.py FOLDER LAST_STEP

Run by check-tensorboard.sh, which makes the run. Exit code 0: all there, no step twice.
"""

import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

SCALARS = [
    "charts/episodic_return",
    "charts/learning_rate",
    "charts/SPS",
    "losses/policy_loss",
    "losses/value_loss",
    "losses/entropy",
    "losses/approx_kl",
    "losses/clipfrac",
    "losses/explained_variance",
    "eval/tier1/regret",
    "eval/tier2/regret_hold",
    "reward/time",
    "gates/unavailable",
    "time/learn",
]
PNG = b"\x89PNG\r\n\x1a\n"


def main(folder, last_step):
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "histograms": 0, "images": 0})
    events.Reload()
    tags = events.Tags()
    missing = [tag for tag in SCALARS if tag not in tags["scalars"]]
    assert not missing, f"no scalars {missing}"

    for tag in tags["scalars"]:
        steps = [event.step for event in events.Scalars(tag)]
        assert steps == sorted(set(steps)), f"{tag}: steps {steps}"
    steps = [event.step for event in events.Scalars("losses/policy_loss")]
    assert steps[-1] == last_step and len(steps) == last_step // steps[0], f"steps {steps}"

    heads = [f"actions/{head}" for head in ("path", "pair", "channels", "chunk", "threads")]
    assert sorted(tags["histograms"]) == sorted(heads), f"histograms {tags['histograms']}"
    for tag in heads:
        for event in events.Histograms(tag):
            counts = event.histogram_value
            assert counts.num > 0 and counts.num == sum(counts.bucket), f"{tag} at {event.step}"

    assert tags["images"] == ["maps/dgx_h100x1", "maps/ib100g_1gpux4"], f"images {tags['images']}"
    for tag in tags["images"]:
        image = events.Images(tag)[-1]
        assert image.encoded_image_string.startswith(PNG) and image.width == image.height >= 88, tag

    count = {kind: len(tags[kind]) for kind in ("scalars", "histograms", "images")}
    print(f"tensorboard reads {count}, {len(steps)} updates to step {last_step}")


main(sys.argv[1], int(sys.argv[2]))
