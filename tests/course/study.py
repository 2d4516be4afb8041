"""Train all runs of lesson 8's study and write mha_course/recall_study.csv: `make study`.

Seven numbers of heads at one width, six seeds; each run is measured after 50 to 1,600 steps. About
five minutes on one core. The numbers of another processor differ a little.
"""

import csv

from mha_course import recall

HEADS, SEEDS, STEPS = (1, 2, 4, 8, 16, 32, 64), range(6), (50, 100, 200, 400, 800, 1600)
EVERY = 50
COLUMNS = ["num_heads", "seed", "steps", "accuracy", "with_noise", "without_a_quarter"]


def rows_of(num_heads, seed, last=STEPS[-1]):
    """What one run gives, a row for each number of steps up to `last`."""
    rows, taken = [], 0

    def measure(model):
        nonlocal taken  # the steps so far: it is called before the first and after each EVERY
        attention = model.attention
        if taken in STEPS:
            few = num_heads < 4
            shares = [recall.accuracy(model), recall.accuracy(model, recall.noisy(attention))]
            off = None if few else recall.accuracy(model, recall.without_a_quarter(attention))
            written = [f"{share:.4f}" for share in shares] + ["" if few else f"{off:.4f}"]
            rows.append([num_heads, seed, taken, *written])
        taken += EVERY
        return 0.0

    recall.train_recall(num_heads, seed, last, measure, EVERY, bar=False)
    return rows


def main():
    with recall.STUDY.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for num_heads in HEADS:
            for seed in SEEDS:
                writer.writerows(rows_of(num_heads, seed))
                file.flush()
                print(f"{num_heads} heads, seed {seed}: done", flush=True)


if __name__ == "__main__":
    main()
