# Patterns for files and for words; quoting; sorted results.
mkdir -p dir/sub "dir/with blank" .hidden
touch a.c b.c ab.c B.h '[x]' 'q?' dir/1 dir/2 dir/10 dir/sub/deep .dot
echo *.c
echo ?.c
echo [ab].c
echo [!a]*.c
echo [a-b]b.c
echo */
echo dir/*
echo */*/*
echo .*o*
echo nothing*here
echo "*.c" '*.c' \*.c
echo '[x]' "["x"]"
echo q\?
pattern='*.h'
echo $pattern "$pattern"
set -f
echo *.c
set +f
for file in dir/*; do echo "<$file>"; done
case abc in a?c) echo "a?c" ;; esac
case 'a*c' in 'a*c') echo "quoted" ;; esac
case x7y in *[0-9]*) echo "a digit" ;; esac
case xy in *[0-9]*) echo "a digit" ;; *) echo "no digit" ;; esac
IFS=:
list=one:two::four
set -- $list
echo "$# $1 $4"
IFS=' '
echo ~ | grep -c /root
cd dir
echo ../*.c
