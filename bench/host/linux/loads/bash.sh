# A hundred command substitutions.
for ((i = 0; i < 100; i++)); do
    x=$(echo "$i")
    [ "$x" = "$i" ] || exit 1
done
