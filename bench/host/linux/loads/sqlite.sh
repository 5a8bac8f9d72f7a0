# A table in a file, an index, sums.
rm -f /tmp/base
{
    echo 'create table t(a integer, b text, c integer); begin;'
    while read -r a b c _; do echo "insert into t values($a,'$b',$c);"; done < /tmp/text
    echo 'commit; create index i on t(b); select b, sum(c) from t group by b order by 2; delete from t where c % 3 = 0;'
    echo 'select count(*), sum(a) from t; pragma integrity_check;'
} | sqlite3 /tmp/base
