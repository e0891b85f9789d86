"""The tables. The columns "x" are relative to multilock."""


def show(title, header, rows):
    """Print a table, with the first column aligned left and the others right."""
    print(f"\n{title}")
    lines = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for first, *rest in lines:
        numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:]))
        print("  " + "  ".join([first.ljust(widths[0]), *numbers]).rstrip())


def number(value):
    """Format a number with about three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def times(ratio):
    return "-" if ratio is None else f"{number(ratio)}x"


def show_failures(failures):
    for peer, reason in failures.items():
        print(f"  {peer}: failed: {reason}")


def uncontended(samples, places):
    def row(peer):
        for place in places:
            yield from (number(samples.median(peer, place)), times(samples.ratio(peer, place)))

    header = ["", *(cell for place in places for cell in (place, "x"))]
    show(
        "1. Uncontended, one process: cycles of acquire and release per second (more is better)",
        header,
        [[peer, *row(peer)] for peer in samples.rounds],
    )
    show_failures(samples.failures)


def contended(samples, effort, place):
    def row(peer):
        lost = sum(samples.of(peer, "lost"))
        return [
            number(samples.median(peer, "total")),
            times(samples.ratio(peer, "total")),
            *(number(samples.median(peer, metric)) for metric in ("first", "middle", "longest", "processor")),
            times(samples.ratio(peer, "processor")),
            f"NO, {lost} lost" if lost else "yes",
        ]

    show(
        f"2. Contended on {place}, {effort.processes} processes x {effort.increments} increments: seconds (less is better)",
        ["", "total", "x", "first done", "median done", "longest wait", "processor", "x", "exact"],
        [[peer, *row(peer)] for peer in samples.rounds],
    )
    show_failures(samples.failures)


def handover(samples, waits):
    def row(peer):
        latencies = [latency for round in samples.of(peer, "latencies") for latency in round]
        return [
            number(samples.median(peer, "median")),
            times(samples.ratio(peer, "median")),
            number(percentile(latencies, 99)),
            len(latencies),
        ]

    show(
        "3. Hand-over to a waiter in another process of this host: milliseconds (less is better)",
        ["", "median", "x", "p99", "samples"],
        [[peer, *row(peer)] for peer in samples.rounds],
    )
    print("  waiting: " + "; ".join(f"{peer} {waits[peer]}" for peer in samples.rounds))
    show_failures(samples.failures)


def percentile(values, percent):
    """Return the nearest-rank percentile, which is one of the values."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def calls(samples):
    show(
        "4. Commands: milliseconds for a call that runs true under the lock (less is better)",
        ["", "median", "x", "slowest round"],
        [
            [
                peer,
                number(samples.median(peer, "median")),
                times(samples.ratio(peer, "median")),
                number(max(samples.of(peer, "median"))),
            ]
            for peer in samples.rounds
        ],
    )
    show_failures(samples.failures)


def idle(percentages, failures, base, seconds):
    def ratio(title):
        ours = percentages.get(f"{base} (command)" if title.endswith(" (command)") else base)
        return percentages[title] / ours if ours else None

    show(
        f"5. Idle waiter over {seconds:g} s: percent of one processor (less is better)",
        ["", "percent", "x"],
        [[title, f"{percent:.3f}", times(ratio(title))] for title, percent in percentages.items()],
    )
    show_failures(failures)
