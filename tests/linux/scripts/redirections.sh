# Redirections, here-documents, descriptors.
echo first >file
echo second >>file
cat <file
cat <<TEXT
expanded: $((2 + 3)) $(echo command)
TEXT
cat <<'TEXT'
not expanded: $((2 + 3)) $(echo command)
TEXT
cat <<-TEXT
	tabs are gone
TEXT
exec 3>third
echo to three >&3
exec 3>&-
cat third
(echo closed >&3) 2>/dev/null || echo "cannot write to what is closed"
exec 4<file
read -r one <&4
read -r two <&4
read -r three <&4 || echo "no third line"
exec 4<&-
echo "$one, $two"
ls missing 2>errors
echo "status $?"
[ -s errors ] && echo "errors were written"
{ echo out; echo err >&2; } >both 2>&1
cat both
{ echo out; echo err >&2; } 2>only-errors >/dev/null
cat only-errors
set -C
(echo again >file) 2>/dev/null || echo "not overwritten"
echo forced >|file
cat file
set +C
: >file
[ -s file ] || echo "emptied"
cat <<A; cat <<B
one
A
two
B
large=$(seq 1 30000)
cat <<TEXT | md5sum
$large
TEXT
while read -r line; do echo "[$line]"; done <<TEXT
  blank in front
back\\slash
TEXT
echo missing >no/such/directory
echo "status $?"
cat <missing
echo "status $?"
