-- Stands before state.sql: waits for the gate.
-- The answer: {0, gate}.
SELECT 0, {take_gate};
