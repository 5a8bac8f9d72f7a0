# Subshells, functions, variables, arithmetic, the environment, recursion.
a=1
(a=2; echo "inner $a")
echo "outer $a"
{ a=3; }
echo "group $a"
f() { local a=4; echo "local $a, $#: $*"; return 5; }
f x 'y z'
echo "status $?, $a"
export b=exported
sh -c 'echo "$b"'
c=once sh -c 'echo "$c"'
echo "${c:-unset} ${a:+set} ${d:=assigned} $d"
text=one.two.three
echo "${text%.*} ${text%%.*} ${text#*.} ${text##*.} ${#text}"
fib() { if [ "$1" -lt 2 ]; then echo "$1"; else echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); fi; }
fib 9
echo $((7 / 2)) $((7 % 2)) $((1 << 10)) $((0x1f)) $((3 > 2 ? 5 : 6)) $((-7 / 2))
i=0
while [ $i -lt 3 ]; do i=$((i + 1)); [ $i = 2 ] && continue; echo "i $i"; done
for word in "$@" a 'b c'; do echo "word $word"; done
case $text in one*) echo "matches" ;; *) echo "does not" ;; esac
set -- p q r
shift
echo "$# $1"
eval 'x=$'"text"
echo "$x"
(set -e; false; echo never)
echo "errexit $?"
(set -u; echo "$undefined") 2>/dev/null
echo "nounset $?"
depth() { if [ "$1" -gt 0 ]; then (depth $(($1 - 1))); else echo "bottom"; fi; }
depth 30
n=0
until [ $n -ge 200 ]; do n=$((n + 1)); (exit $((n % 3))); done
echo "200 subshells"
command -v sh
type cd >/dev/null && echo "cd is there"
unset a
echo "${a-gone}"
printf '%5d|%-5s|%x|%s\n' 42 ab 255 'c d'
