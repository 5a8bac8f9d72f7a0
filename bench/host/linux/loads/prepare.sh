# What the loads work on, in /tmp: a project in C, a tree of files, a text.
set -e
mkdir /tmp/project /tmp/tree
cd /tmp/project
objects=
for ((file = 0; file < 24; file++)); do
    {
        echo '#include <stdio.h>'
        echo '#include <stdlib.h>'
        echo '#include <string.h>'
        for ((function = 0; function < 10; function++)); do
            echo "int f_${file}_$function(int n) { char text[40]; snprintf(text, sizeof text, \"%d\", n);"
            echo "    for (int i = 0; i < n; i++) n -= (int)strlen(text) + i % $((function + 2)); return n; }"
        done
    } > "f$file.c"
    objects+=" f$file.o"
done
echo 'int f_0_0(int); int main(void) { return f_0_0(5) > 100; }' > main.c
printf 'all: program\nprogram: main.o%s\n\ttcc -o $@ $^\n%%.o: %%.c\n\ttcc -c -o $@ $<\nclean:\n\trm -f program *.o\n' "$objects" > Makefile
for ((folder = 0; folder < 10; folder++)); do
    mkdir "/tmp/tree/$folder"
    for ((file = 0; file < 20; file++)); do
        for ((line = 0; line < 20; line++)); do
            echo "line $line of file $file, which is in folder $folder"
        done > "/tmp/tree/$folder/$file"
    done
done
for ((line = 0; line < 3000; line++)); do
    echo "$line word$((line * 7919 % 211)) $((line * 104729 % 1009)) end"
done > /tmp/text
