"""Moving traffic from one arm to another with evidence.

    configured   from settings to rollouts and their store
    router       what the client talks to: assign, record, outcome
    assignment → experiments → rollouts    which arm a unit gets, at which stage
    records → tally → evidence → verdict   from requests to PROMOTE, HOLD or ROLLBACK
    state, judge, stores                   where a rollout stands, and who moves it
    report, console, openfeature           looking at it

Importing any of these imports no driver: sqlite3, SQLAlchemy and redis come with the store that needs them.
"""
