"""What an interpreter does all day: arithmetic, dicts, lists, strings, calls. Prints a checksum.

python loop.py ROUNDS
python loop.py ROUNDS turns     prints the fastest round, in ns, as well
"""

import sys
import time

MASK = 0xFFFFFFFF


class Account:
    """An object with state, for attribute access and bound methods."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.balance = 0

    def deposit(self, amount: int) -> int:
        self.balance += amount
        return self.balance


def collatz(start: int) -> int:
    """Steps from `start` down to 1."""
    steps = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        steps += 1
    return steps


def fibonacci(n: int) -> int:
    """Calls, returns, comparisons."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def words(rounds: int) -> dict[str, int]:
    """A dict of strings, counted."""
    seen: dict[str, int] = {}
    state = rounds
    for _ in range(4000):
        state = (state * 1103515245 + 12345) & MASK
        key = "w" + str(state >> 24)
        seen[key] = seen.get(key, 0) + 1
    return seen


def sieve(limit: int) -> int:
    """List reads and writes."""
    flags = [True] * limit
    for i in range(2, int(limit**0.5) + 1):
        if flags[i]:
            for j in range(i * i, limit, i):
                flags[j] = False
    return sum(flags)


def main(rounds: int, turns: bool) -> None:
    accounts = [Account(n) for n in range(100)]
    total = 0
    mean = 0.0
    fastest = 0
    for round_ in range(rounds):
        began = time.perf_counter_ns()
        total += sum(collatz(n) for n in range(1, 120))
        total += fibonacci(15)
        total += sum(count for word, count in sorted(words(round_).items()) if word < "w5")
        total += sieve(6000)
        for n in range(5000):
            total += accounts[n % 100].deposit(n & 7)
            mean = mean * 0.99 + n * 0.01
        total &= MASK
        took = time.perf_counter_ns() - began
        fastest = min(fastest or took, took)
    if turns:
        print("loop", fastest)
    print("#", total, round(mean, 6))


if __name__ == "__main__":
    main(int(sys.argv[1]), "turns" in sys.argv)
