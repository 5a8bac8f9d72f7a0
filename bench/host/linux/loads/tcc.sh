# Compiles ten files, one after the other.
cd /tmp/project
for ((i = 0; i < 10; i++)); do
    tcc -c -o /tmp/one.o "f$i.c" || exit 1
done
