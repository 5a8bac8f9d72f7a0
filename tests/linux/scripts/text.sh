# Tools for text on their own, with awkward input.
printf 'no newline at the end' | wc
printf 'a\0b\0' | tr '\0' '\n'
printf '%s\n' 10 9 2 1 | sort
printf '%s\n' 10 9 2 1 | sort -n | paste -s -d ,
printf 'b 2\na 10\nc 1\n' | sort -k 2n
printf 'x\nx\ny\n' | uniq -c
seq 1 20 | sed -n '5,7p;/^1[0-9]$/!d;$='
echo 'The quick brown fox' | sed 's/\(.*\) \(.*\)/\2 \1/; y/abc/ABC/'
printf 'one\ntwo\nthree\n' | sed '1!G;h;$!d'
awk 'BEGIN { for (i = 0; i < 5; i++) a[i] = i * i; for (i in a) s += a[i]; print s, length("abc"), substr("hello", 2, 3), toupper("x"), sprintf("%05.2f", 3.14159) }'
printf 'k=1\nk=2\nj=3\n' | awk -F= '{ c[$1] += $2 } END { print c["k"], c["j"] }'
echo 'a,b,c' | cut -d , -f 2-
echo abcdef | cut -c 2-4 | rev
printf 'a\tb\n' | expand -t 4
echo 'some words to be folded here' | fold -s -w 10
seq 1 9 | paste - - -
printf 'a b\nc d\n' | while read -r x y; do echo "$y $x"; done
echo hello | od -c | head -n 1
echo hello | hexdump -C | head -n 1
echo hello | base64 | tee /dev/stderr | base64 -d
echo hello | xxd | xxd -r
printf 'one\ntwo\n' >1; printf 'one\nzwei\n' >2
diff -u 1 2 | tail -n +3
diff -u 1 2 >patch; patch 1 <patch; cmp 1 2 && echo patched
expr 6 '*' 7
expr abcdef : 'abc\(.*\)'
echo '2^64; scale=5; 1/7' | bc
date -u -d @0 '+%Y-%m-%d %H:%M:%S'
basename /a/b.txt .txt
dirname /a/b.txt
seq 3 -1 1 | tac
head -c 5 /dev/zero | od -An -tx1
printf '%s\n' "$(printf 'tr%dling\n\n\n' 1)"
echo grep: "$(printf 'foo\nbar\n' | grep -vn foo)"
printf 'aXbXc' | awk 'BEGIN { RS = "X" } { printf "%s.", $0 }'; echo
seq 1 100 | shuf | sort -n | md5sum
strings /bin/busybox | grep -c BusyBox >/dev/null && echo strings
