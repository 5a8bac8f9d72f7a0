# What bash has beyond the standard.
set -o pipefail
false | true
echo "pipefail $?"
true | false | true
echo "${PIPESTATUS[@]}"
array=(one 'two words' three)
array+=(four)
echo "${#array[@]} ${array[1]} ${array[@]:2}"
declare -A map=([b]=2 [a]=1)
for key in a b; do echo "$key ${map[$key]}"; done
[[ abc =~ ^a(b)c$ ]] && echo "${BASH_REMATCH[1]}"
diff <(seq 1 5) <(seq 2 6)
cat <<<"here string"
echo {a,b}{1..3}
text=Mixed
echo "${text^^} ${text,,} ${text/x/-}"
shopt -s extglob globstar nullglob
mkdir -p x/y && touch x/1 x/y/2
echo x/** none*
case foobar in @(foo|bar)*) echo extended ;; esac
coproc cat
echo to the coprocess >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
exec {COPROC[1]}>&-
wait
mapfile -t lines < <(seq 1 4)
echo "${#lines[@]} ${lines[3]}"
printf -v made '%03d' 7
echo "$made"
time_used=$( { TIMEFORMAT=%R; time sleep 0.01; } 2>&1 )
[[ $time_used < 9 ]] && echo "timed"
(trap 'echo "line failed"' ERR; false; true)
read -r -t 0.1 nothing < <(sleep 0.5)
echo "timeout $(($? > 128))"
exec 9>file; flock=9; echo nine >&9; exec 9>&-; cat file
echo $((2 ** 20)) $((RANDOM >= 0)) ${BASH_VERSION%%.*}
select_test() { local -n reference=$1; reference=changed; }
value=old; select_test value; echo "$value"
kill -l 9 15
ulimit -n 64; ulimit -n
