# A database of 100,000 rows: created, filled, changed, checked, read again.
sqlite3 base.db <<'SQL'
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city INTEGER, score REAL);
CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
    INSERT INTO city SELECT i, 'city ' || i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
    INSERT INTO person SELECT i, 'name ' || (i * 7919 % 100003), i * 31 % 100 + 1, i * 17 % 1000 / 10.0 FROM n;
COMMIT;
CREATE INDEX by_name ON person (name);
SELECT count(*), sum(score), min(name), max(name) FROM person;
SELECT city.name, count(*), round(avg(score), 3) FROM person JOIN city ON city.id = city
    GROUP BY city.id ORDER BY 3 DESC, 1 LIMIT 3;
UPDATE person SET score = score + 1 WHERE id % 3 = 0;
DELETE FROM person WHERE id % 10 = 0;
SELECT count(*), sum(score) FROM person;
SELECT id FROM person WHERE name = 'name 777';
PRAGMA integrity_check;
SQL
echo "status $?"
sqlite3 base.db 'VACUUM; SELECT count(*) FROM person;'
sqlite3 base.db .dump | md5sum
sqlite3 base.db 'BEGIN; DELETE FROM person; ROLLBACK; SELECT count(*) FROM person;'
sqlite3 base.db 'PRAGMA journal_mode=WAL; INSERT INTO city VALUES (101, "new"); SELECT count(*) FROM city;'
sqlite3 base.db 'BEGIN IMMEDIATE; SELECT 1;' '.shell sqlite3 base.db "BEGIN IMMEDIATE" 2>&1' 'COMMIT;'
sqlite3 base.db 'SELECT nothing FROM nowhere' 2>&1
echo "status $?"
