"""Table 1, its statistics and its page, against numbers worked out by hand."""

import json
from itertools import permutations, product
from math import sqrt

import pytest
from scipy.special import stdtrit

from meada.errors import MeadaError
from meada.evaluation.statistics import page_trend
from meada.reports.beside_paper import paper
from meada.reports.budget import reached, seconds_at
from meada.reports.budget import section as equal_seconds
from meada.reports.differences import against, comparisons
from meada.reports.digits import in_figure_1, in_table_1, summary
from meada.reports.figure1 import by_rounds, figure1
from meada.reports.order import order
from meada.reports.runs import find_runs
from meada.reports.table1 import of_table_1, page, write
from meada.reproduce.sets import short, with_rounds
from meada.runs.recipe import Recipe, load_recipe, to_toml

RULES = ("last", "source_val", "crafted", "oracle")


@pytest.fixture
def make(tmp_path):
    """A finished run's folder with the numbers that a test needs."""

    def run(recipe: Recipe, *accuracies: float, minimise=600.0, maximise=(), scores=None,
            oracle=()):  # fmt: skip
        accuracies = accuracies or (30.0, 50.0, 80.0)
        folder = tmp_path / f"run-{len([*tmp_path.iterdir()])}"
        folder.mkdir()
        (folder / "recipe.toml").write_text(to_toml(recipe))
        domains = ("svhn", "mnist_m", "usps")
        results, chosen = (
            {d: {"accuracy": a, "ece": (100 - a) / 1000, "nll": 1.0, "n": 10}
             for d, a in zip(domains, told, strict=True)}
            for told in (accuracies, oracle or accuracies)
        )  # fmt: skip
        (folder / "record.json").write_text(json.dumps({
            "recipe": recipe.name, "method": recipe.method["name"], "seed": recipe.seed,
            "data": "digits", "steps": recipe.plan.total_steps,
            "rounds": [{"seconds": s} for s in maximise or [0.0] * recipe.plan.rounds],
            "seconds": {"minimise": minimise, "maximise": sum(maximise), "evaluate": 60.0},
            "environment": {"threads": 2, "processor": "some CPU"},
            "results": {**dict.fromkeys(RULES, results), "oracle": chosen},
        }))  # fmt: skip
        scores = scores or {10_000: sum(accuracies) / 3}
        lines = [json.dumps({"step": 100, "round": 1})]
        lines += [json.dumps({"step": t, "scores": {"oracle": v}}) for t, v in scores.items()]
        (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
        return folder

    return run


@pytest.fixture
def four(make):
    return [
        make(load_recipe("digits/erm", seed=0), 30.0, 50.0, 80.0),
        make(load_recipe("digits/erm", seed=1), 32.0, 50.0, 80.0),
        make(load_recipe("digits/meada", seed=0), 40.0, 60.0, 80.0),
        make(load_recipe("digits/meada", seed=1), 44.0, 60.0, 80.0),
    ]


def test_the_mean_is_over_targets_then_over_runs(four):
    got = summary(find_runs(four[:2]), "last", "mean")
    assert got.mean == pytest.approx((160 / 3 + 162 / 3) / 2) and got.n == 2
    assert got.std == pytest.approx(sqrt(2) / 3)


def test_the_papers_means_over_the_same_three():
    means = {m: round(paper(m, "mean"), 2) for m in ("erm", "par", "ada", "meada", "meada-bnn")}
    assert means == {"erm": 55.94, "par": 59.06, "ada": 58.25, "meada": 61.69, "meada-bnn": 62.29}


def test_only_the_shipped_recipe_counts(make):
    """Another K, another setting, a shorter run and a study's run each stay out."""
    shipped = load_recipe("digits/meada", seed=4)
    others = [
        with_rounds(shipped, 1),
        load_recipe("digits/meada", ["method.beta=100.0"], seed=4),
        load_recipe("digits/meada", ["plan.total_steps=5000"], seed=4),
        load_recipe("digits/meada", ["scale=0.1"], seed=4),
        short("meada", [], 4).recipe,
    ]
    runs = find_runs([make(shipped), *(make(recipe, 99.0, 99.0, 99.0) for recipe in others)])
    assert [in_table_1(run) for run in runs] == [True] + [False] * 5
    assert [in_figure_1(run) for run in runs] == [True, True] + [False] * 4
    assert {m: len(group) for m, group in of_table_1(runs).items()} == {"meada": 1}
    told = page(runs, "meada reproduce digits")
    table = told.partition("## Figure 1")[0]
    assert "99.00" not in table and "| meada | last | 30.00 | 50.00 | 80.00 | 53.33 | 1 |" in table
    out = told.partition("## Left out")[2]
    assert all(runs[k].name in out for k in (2, 3, 4)) and runs[5].name not in out


def test_a_note_a_device_or_a_later_default_does_not_keep_a_run_out(make):
    folder = make(load_recipe("digits/meada", ["note=another", "device=cpu"], seed=0))
    toml = (folder / "recipe.toml").read_text()
    (folder / "recipe.toml").write_text(toml.replace('precision = "fp32"\n', ""))
    assert in_table_1(find_runs([folder])[0])


def test_the_same_seed_twice_is_one_run(make):
    twice = [make(load_recipe("digits/erm", seed=0)) for _ in range(2)]
    assert len(of_table_1(find_runs(twice))["erm"]) == 1


def test_differences_are_paired_by_seed(four):
    chosen = of_table_1(find_runs(four))
    svhn, *_ = against(chosen["meada"], chosen["erm"], "last")  # 10 and 12: an error of 1, one degree of freedom
    assert svhn.difference.value == 11 and svhn.difference.seeds == 2
    half = stdtrit(1, 0.975)
    text = "\n".join(comparisons(chosen))
    assert f"| meada - erm | +11.00 ({11 - half:+.2f} to {11 + half:+.2f}) |" in text  # two seeds prove little
    assert "+0.00 (no spread: unknown)" in text  # USPS


def test_without_common_seeds_the_errors_add(make):
    recipe = "digits/erm", "digits/meada"
    runs = [make(load_recipe(recipe[0], seed=s), a, 50.0, 80.0) for s, a in ((0, 30.0), (1, 32.0))]
    runs += [make(load_recipe(recipe[1], seed=s), a, 50.0, 80.0) for s, a in ((2, 31.0), (3, 35.0))]
    chosen = of_table_1(find_runs(runs))
    gap = against(chosen["meada"], chosen["erm"], "last")[0].difference
    freedom = 5**2 / (1 / 1 + 4**2 / 1)  # Welch and Satterthwaite: variances of the means are 1 and 4
    assert gap.value == 2 and gap.interval.high - 2 == pytest.approx(stdtrit(freedom, 0.975) * sqrt(5))
    one = of_table_1(find_runs([runs[0], runs[2]]))
    assert "+1.00 (one run: unknown)" in "\n".join(comparisons(one))


def test_the_papers_order_is_judged_whole_and_step_by_step(make, four):
    """Differences on SVHN of 1, 2 and 3: 2 ± 4.303 / sqrt(3), worked out by hand."""
    assert not order(of_table_1(find_runs(four)))  # no ADA

    def ranked(ada_on_svhn, ada_on_mnist_m=55.0):
        wobble = {"erm": 0.0, "ada": 0.1, "meada": 0.3}  # so that no two gaps are the same
        runs = [make(load_recipe(f"digits/{method}", seed=s), svhn, mnist_m + s * wobble[method], 80.0)
                for method, mnist_m, values in (
                    ("erm", 50.0, (30.0, 32.0, 34.0)),
                    ("ada", ada_on_mnist_m, ada_on_svhn),
                    ("meada", 60.0, (44.0, 46.0, 48.5)),
                ) for s, svhn in enumerate(values)]  # fmt: skip
        return "\n".join(order(of_table_1(find_runs(runs))))

    text = ranked((31.0, 34.0, 37.0))
    assert "| ada - erm | SVHN | last | +2.00 (-0.48 to +4.48) | 3 of 3 |" in text
    assert "| SVHN | last | 3 of 3 | 0.0046 |" in text  # 1 / 216
    assert "last: **confirmed** (p = 0.0046 on SVHN, 0.0046 on MNIST-M; 3 of 4 steps above 0" in text
    assert "oracle: **neither confirmed nor refuted**" in ranked((29.0, 34.0, 49.0))
    assert "last: **refuted**" in ranked((40.0, 42.0, 44.1), ada_on_mnist_m=49.0)
    assert not ranked((40.0,))  # one seed


def test_the_chance_of_an_order_is_counted_over_all_orders():
    """Page's L of every way in which two seeds can rank three methods, one by one."""

    def length(seeds):
        return sum(place * sum(ranks) for place, ranks in enumerate(zip(*seeds, strict=True), 1))

    ours = ((1, 2, 3), (2, 1, 3))  # ERM, ADA, ME-ADA: the second seed has the first two reversed
    every = [*product(permutations((1, 2, 3)), repeat=2)]
    share = sum(length(seeds) >= length(ours) for seeds in every) / len(every)
    best_first = [[3.0, 3.0], [2.0, 1.0], [1.0, 2.0]]
    assert page_trend(best_first) == pytest.approx(share) and 0 < share < 0.2


def test_time_is_minimisation_and_the_rounds_before(make):
    scores = {200: 40.0, 5000: 50.0, 10_000: 60.0}
    maximise = [100.0, 200.0, 400.0]
    recipe = load_recipe("digits/meada", seed=0)
    folder = make(recipe, minimise=1000.0, maximise=maximise, scores=scores)
    (run,) = find_runs([folder])
    assert seconds_at(run, 200) == pytest.approx(20 + 100)  # the second round is still to come
    assert seconds_at(run, 5000) == pytest.approx(500 + 700)
    assert reached(run, 119.0) is None
    assert reached(run, 1199.0) == (200, 40.0) and reached(run, 1200.0) == (5000, 50.0)
    erm = make(load_recipe("digits/erm", seed=0), minimise=600.0, scores={10_000: 45.0})
    text = "\n".join(equal_seconds(of_table_1(find_runs([erm, folder]))))
    # at 600, 1,200 and 2,400 s; the whole takes 1,700 s
    want = "| meada | 40.00 (200) | 50.00 (5,000) | 60.00 (10,000) | 60.00 (10,000) | 28 | 1 |"
    assert want in text
    assert "| erm | 45.00 (10,000) | 45.00 (10,000) |" in text and "2 threads of some CPU" in text


def test_figure_1_has_every_k_and_erm_at_none(make, tmp_path):
    ada = load_recipe("digits/ada", seed=0)
    folders = [make(load_recipe("digits/erm", seed=0)), make(load_recipe("digits/noise", seed=0))]
    folders += [make(with_rounds(ada, k), 30.0 + k, 50.0, 80.0) for k in (1, 2, 3)]
    runs = find_runs(folders)
    assert [*by_rounds(runs)] == [("erm", 0), ("ada", 1), ("ada", 2), ("ada", 3)]
    heights = [bar.get_height() for bar in figure1(runs).axes[0].patches]
    assert heights == pytest.approx([31.0, 32.0, 33.0])
    write(runs, tmp_path / "site" / "README.md", "meada reproduce figure1")
    text = (tmp_path / "site" / "README.md").read_text()
    assert "| ada | 2 | 32.00 | 50.00 | 80.00 | 54.00 | 1 |" in text
    assert "(figures/figure1.png)" in text
    assert (tmp_path / "site" / "figures" / "figure1.png").read_bytes()[1:4] == b"PNG"


def test_figure_1_names_a_method_that_lacks_the_first_k(make):
    folders = [make(load_recipe("digits/meada", seed=s)) for s in (0, 1)]
    folders += [make(with_rounds(load_recipe("digits/ada", seed=0), k)) for k in (1, 3)]
    folders.append(make(load_recipe("digits/ada", seed=1)))
    (legend,) = figure1(find_runs(folders)).legends
    named = {text.get_text() for text in legend.get_texts()}
    assert named == {"ada (n = 1 to 2)", "meada (n = 2)"}


def test_the_page_names_its_records_and_their_commands(four, make):
    noise = make(load_recipe("digits/noise", seed=2))
    text = page(find_runs([*four, noise]), "meada reproduce digits")
    assert "Made of 5 records" in text and "SYN cannot be had" in text
    for folder in four:
        assert f"`{folder.name}`" in text
    assert "`OMP_NUM_THREADS=2 meada train digits/meada --seed 1 --out NEW`" in text
    assert "10, 0, 1 | 2 threads of some CPU" in text
    assert "| noise | last |" in text and "| noise | *paper*" not in text


def test_calibration_stands_beside_the_plain_networks(four):
    whole = page(find_runs(four), "meada reproduce digits")
    text = whole.partition("## Calibration")[2].partition("##")[0]
    # ECE of a domain here is (100 - accuracy) / 1000: 0.070 and 0.068 on SVHN for ERM
    same = "0.050 ± 0.000 | 0.020 ± 0.000"
    assert f"| erm | 0.069 ± 0.001 | {same} | 0.046 ± 0.000 | 1.000 ± 0.000 |" in text
    assert "| meada | 0.058 ± 0.003 | 0.040 ± 0.000 | 0.020 ± 0.000 | 0.039 ± 0.001 |" in text
    assert "| ECE SVHN | ECE MNIST-M | ECE USPS | ECE mean of three | NLL SVHN |" in text


def test_ours_beside_the_paper_with_both_errors(four):
    text = page(find_runs(four), "meada reproduce digits").partition("## Beside the paper")[2]
    # ERM on SVHN: 31 with an error of 1 from two seeds, 31.95 with 1.91 / sqrt(10) from ten
    a, b = 1.0, 1.91**2 / 10
    half = stdtrit((a + b) ** 2 / (a**2 / (2 - 1) + b**2 / (10 - 1)), 0.975) * sqrt(a + b)  # Welch and Satterthwaite
    assert f"| erm | oracle | -0.95 ({-0.95 - half:+.2f} to {-0.95 + half:+.2f}), too few seeds |" in text
    assert f"| erm | last | -0.95 ({-0.95 - half:+.2f} to" in text


def test_a_difference_from_the_paper_is_found_and_agreement_needs_narrow_errors(make):
    runs = [make(load_recipe("digits/par", seed=s), 36.0 + 0.5 * s, 70.0 + 0.1 * s, 80.0 + 4.0 * s) for s in (0, 1, 2)]
    text = page(find_runs(runs), "meada reproduce digits").partition("## Beside the paper")[2].partition("\n## ")[0]
    svhn, mnist_m, usps = next(row for row in text.splitlines() if row.startswith("| par | last")).split(" | ")[2:5]
    assert svhn.endswith("reproduced") and mnist_m.endswith("**differs**") and usps.endswith("too few seeds")


def test_one_seed_is_not_compared_with_the_paper(make):
    text = page(find_runs([make(load_recipe("digits/par", seed=0))]), "meada reproduce digits")
    rest = text.partition("## Beside the paper")[2].partition("\n## ")[0]
    assert "| par | last | -6.08, unknown (one run) |" in rest and "reproduced |" not in rest


def test_runs_on_other_data_have_no_page(tmp_path):
    with pytest.raises(MeadaError, match="none of the runs is on digits"):
        page([], "meada reproduce digits")


CLOSER = ["evaluation.every=100", "evaluation.subset=2007"]


def test_a_closer_look_stands_beside_the_same_seeds_of_table_1(four, make):
    looked = [
        make(load_recipe("digits/erm", CLOSER, seed=0), 30.0, 50.0, 80.0, oracle=(31, 53, 82)),
        make(load_recipe("digits/erm", CLOSER, seed=1), 32.0, 50.0, 80.0, oracle=(33, 55, 82)),
        make(load_recipe("digits/erm", CLOSER, seed=2), oracle=(99, 99, 99)),  # has no like
    ]  # fmt: skip
    told = page(find_runs([*four, *looked]), "meada reproduce digits")
    rest = told.partition("## Where the oracle looks more closely")[2].partition("\n## ")[0]
    assert "| erm | every 200 steps, at 600 images a target | 31.00 ± 1.41 | 50.00 ± 0.00 |" in rest
    assert "| erm | every 100 steps, at 2,007 images a target | 32.00 ± 1.41 | 54.00 ± 1.41 |" in rest
    assert "| difference | +1.00 (no spread: unknown) | +4.00 (-8.71 to +16.71) | +2.00 (no spread: unknown) |" in rest
    assert "99" not in rest and "the same to the last image" in rest
    assert "run-6" in told.partition("## Left out")[2]  # the seed without its like


def test_a_closer_look_at_another_training_is_called_so(four, make):
    other = make(load_recipe("digits/erm", CLOSER, seed=0), 30.1, 50.0, 80.0)
    assert "**not** the same" in page(find_runs([*four, other]), "meada reproduce digits")


def test_a_stand_in_for_syn_stands_apart(four, make):
    def tried(folder, **accuracies):
        told = {rule: {"accuracy": a} for rule, a in accuracies.items()}
        (folder / "apart.json").write_text(json.dumps({"printed_numbers": told}))

    assert "stand-in" not in page(find_runs(four), "meada reproduce digits")
    closer = make(load_recipe("digits/erm", CLOSER, seed=0), 30.0, 50.0, 80.0)
    tried(closer, last=40.0, oracle=99.0)  # the oracle of a closer look is not Table 1's
    tried(four[1], last=42.0, oracle=43.0)
    text = page(find_runs([*four, closer]), "meada reproduce digits")
    rest = text.partition("## A stand-in for SYN")[2].partition("\n## ")[0]
    assert "| erm | last | 41.00 ± 1.41 | 0, 1 |" in rest
    assert "| erm | oracle | 43.00 | 1 |" in rest and "meada |" not in rest
    assert "| erm | last | 31.00 ± 1.41 | 50.00 ± 0.00 | 80.00 ± 0.00 |" in text  # as it was
