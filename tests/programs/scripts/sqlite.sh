# What SQLite's shell can do, from the journal's modes to full-text search; the same output each time.
set -eu
sqlite3 -version | cut -d' ' -f1
sqlite3 first.db <<'SQL'
.bail on
PRAGMA journal_mode = wal;
CREATE TABLE numbers (n INTEGER PRIMARY KEY, square INTEGER, root REAL, name TEXT);
WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 20000)
INSERT INTO numbers SELECT n, n * n, round(sqrt(n), 6), printf('%05d', n * 7919 % 20000) FROM up;
CREATE INDEX by_name ON numbers (name) WHERE n % 2;
SELECT count(*), sum(square), round(sum(root), 3), min(name), max(name) FROM numbers;
EXPLAIN QUERY PLAN SELECT n FROM numbers WHERE name = '00042' AND n % 2;
SELECT n FROM numbers WHERE name BETWEEN '00040' AND '00050' AND n % 2 ORDER BY name;
SELECT n % 7 AS rest, count(*), group_concat(DISTINCT substr(name, 1, 1)) FROM numbers GROUP BY rest;
SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 3 PRECEDING AND CURRENT ROW), rank() OVER (ORDER BY n % 5)
FROM numbers WHERE n <= 12;
BEGIN;
DELETE FROM numbers WHERE n > 10;
SAVEPOINT inner_one;
UPDATE numbers SET name = 'gone';
ROLLBACK TO inner_one;
SELECT group_concat(name) FROM numbers;
ROLLBACK;
SELECT count(*) FROM numbers;
CREATE TABLE log (what TEXT);
CREATE TRIGGER note AFTER UPDATE OF name ON numbers WHEN new.name <> old.name
BEGIN INSERT INTO log VALUES (old.name || ' to ' || new.name); END;
UPDATE numbers SET name = 'seven' WHERE n = 7;
SELECT * FROM log;
PRAGMA wal_checkpoint(TRUNCATE);
SQL
! sqlite3 first.db <<'SQL'
CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words SELECT 'number ' || name || CASE n % 3 WHEN 0 THEN ' fizz' ELSE ' plain' END FROM numbers;
SELECT count(*) FROM words WHERE words MATCH 'fizz AND number';
SELECT highlight(words, 0, '[', ']') FROM words WHERE words MATCH '0004*' ORDER BY rowid LIMIT 3;
CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1, y0, y1);
INSERT INTO boxes SELECT n, n % 100, n % 100 + 2, n / 100, n / 100 + 2 FROM numbers;
SELECT count(*), sum(id) FROM boxes WHERE x0 >= 10 AND x1 <= 30 AND y0 >= 50 AND y1 <= 60;
SELECT json_extract('{"a": [1, {"b": 2.5}]}', '$.a[1].b'), json_group_array(n) FROM numbers WHERE n < 6;
SELECT value FROM json_each('[3, "x", null, {"y": 1}]');
SELECT hex(zeroblob(4)), quote(x'0102'), typeof(1e300 * 1e300), 9223372036854775807 + 0, unicode('ä');
SELECT date('2024-02-29', '+1 year'), strftime('%j %W', '2026-11-27'), julianday('2000-01-01 12:00');
INSERT INTO numbers (n) VALUES (7);
SELECT 'after the error';
PRAGMA integrity_check;
SQL
sqlite3 first.db 'PRAGMA journal_mode = delete; VACUUM; PRAGMA freelist_count;'
sqlite3 first.db .dump > dump.sql
sqlite3 second.db < dump.sql
sqlite3 first.db '.backup third.db'
for file in first second third; do
    sqlite3 $file.db '.sha3sum'
done
sqlite3 -csv -header first.db 'SELECT n, name, root FROM numbers WHERE n % 1000 = 0' > table.csv
sqlite3 :memory: -cmd '.mode csv' -cmd '.import table.csv t' \
    'SELECT count(*), sum(root) FROM t; SELECT name FROM t ORDER BY name DESC LIMIT 3'
# Two writers at a time: each waits for the other.
for writer in 1 2; do
    for n in 1 2 3 4 5; do
        sqlite3 -cmd '.timeout 60000' second.db "BEGIN IMMEDIATE; INSERT INTO log VALUES ('$writer.$n'); COMMIT"
    done &
done
wait
sqlite3 second.db "SELECT what FROM log WHERE what GLOB '?.?' ORDER BY what" | tr '\n' ' '
