"""A bank: transfers by many threads, kill -9, restart. The sum is constant, and each transfer is there completely, once, or not at all."""

import random
import threading

import pytest

import helenus

pytestmark = pytest.mark.process

ACCOUNTS = 12
BALANCE = 1000
TELLERS = 6
AUDITORS = 2
TRANSFERS_BEFORE_KILL = (100, 600)
ROUNDS = 4

TRANSFER = """BEGIN TRANSACTION
  LET a = (SELECT balance FROM bank.accounts WHERE id = ?);
  LET b = (SELECT balance FROM bank.accounts WHERE id = ?);
  SELECT a.balance, b.balance;
  IF a.balance >= ? AND b IS NOT NULL THEN
    UPDATE bank.accounts SET balance -= ? WHERE id = ?;
    UPDATE bank.accounts SET balance += ? WHERE id = ?;
    INSERT INTO bank.transfers (teller, n, origin, target, amount) VALUES (?, ?, ?, ?, ?);
  END IF
COMMIT TRANSACTION"""
LETS = "".join(f"LET a{i} = (SELECT balance FROM bank.accounts WHERE id = {i}); " for i in range(ACCOUNTS))
AUDITS = [
    f"BEGIN TRANSACTION {LETS} SELECT {', '.join(f'a{i}.balance' for i in range(ACCOUNTS))}; COMMIT TRANSACTION",
    f"BEGIN TRANSACTION SELECT balance FROM bank.accounts WHERE id IN ({', '.join(map(str, range(ACCOUNTS)))}); "
    "COMMIT TRANSACTION",
]


def create(session):
    session.execute("CREATE KEYSPACE bank WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE bank.accounts (id int PRIMARY KEY, balance int) WITH transactional_mode = 'full'")
    session.execute("CREATE INDEX ON bank.accounts (balance)")
    session.execute("CREATE TABLE bank.transfers (teller int, n int, origin int, target int, amount int, "
                    "PRIMARY KEY (teller, n)) WITH transactional_mode = 'mixed_reads'")
    for i in range(ACCOUNTS):
        session.execute(f"INSERT INTO bank.accounts (id, balance) VALUES ({i}, {BALANCE})")


class Teller(threading.Thread):
    """Transfers until the node dies. Keeps the numbers of the transfers whose answer came."""

    def __init__(self, number, session, first):
        super().__init__(daemon=True)
        self.number, self.session, self.n = number, session, first
        self.acked = set()
        self.transfer = session.prepare(TRANSFER)

    def run(self):
        dice = random.Random(self.number * 1000 + self.n)
        while True:
            origin, target = dice.sample(range(ACCOUNTS), 2)
            amount = dice.randint(1, BALANCE)
            values = (origin, target, amount, amount, origin, amount, target, self.number, self.n, origin, target, amount)
            try:
                before = self.session.execute(self.transfer, values).one()
            except Exception:
                return
            if before[0] >= amount:
                self.acked.add(self.n)
            self.n += 1


class Auditor(threading.Thread):
    """Adds up all accounts in transactions that only read, until the node dies."""

    def __init__(self, session, statement):
        super().__init__(daemon=True)
        self.session, self.statement = session, session.prepare(statement)
        self.sums = set()
        self.audits = 0

    def run(self):
        while True:
            try:
                rows = self.session.execute(self.statement).all()
            except Exception:
                return
            self.sums.add(sum(value for row in rows for value in row))
            self.audits += 1


def check(session, acked):
    """Compares the accounts with the journal of transfers, which is written in the same transactions."""
    expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
    done = set()
    for row in session.execute("SELECT teller, n, origin, target, amount FROM bank.transfers"):
        expected[row.origin] -= row.amount
        expected[row.target] += row.amount
        done.add((row.teller, row.n))
    lost = acked - done
    assert not lost, f"{len(lost)} acknowledged transfers are lost: {sorted(lost)[:5]}"
    balances = {row.id: row.balance for row in session.execute("SELECT id, balance FROM bank.accounts")}
    assert balances == expected
    for account, balance in balances.items():
        found = {row.id for row in session.execute(f"SELECT id FROM bank.accounts WHERE balance = {balance}")}
        assert account in found, f"the index lacks account {account}"


@pytest.mark.timeout(900)
def test_the_sum_is_constant(node):
    create(node.connect())
    acked, audits = set(), 0
    dice = random.Random(48)
    firsts = [0] * TELLERS
    for _ in range(ROUNDS):
        tellers = [Teller(i, node.connect(), firsts[i]) for i in range(TELLERS)]
        auditors = [Auditor(node.connect(), AUDITS[i % len(AUDITS)]) for i in range(AUDITORS)]
        [thread.start() for thread in tellers + auditors]
        goal = dice.randint(*TRANSFERS_BEFORE_KILL)
        helenus.wait_until(lambda: sum(len(t.acked) for t in tellers) >= goal and all(a.audits for a in auditors),
                           120, f"{goal} transfers", 0.001)
        node.kill()
        [thread.join(60) for thread in tellers + auditors]
        assert set().union(*(a.sums for a in auditors)) == {ACCOUNTS * BALANCE}
        audits += sum(a.audits for a in auditors)
        acked |= {(t.number, n) for t in tellers for n in t.acked}
        firsts = [t.n + 1 for t in tellers]
        node.close_clients()
        node.start()
        check(node.connect(), acked)
    print(f"{len(acked)} transfers, {audits} audits, {ROUNDS} kills")
