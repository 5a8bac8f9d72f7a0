# Tools over a tree of a thousand files.
mkdir tree
for a in 0 1 2 3 4 5 6 7 8 9; do
    for b in 0 1 2 3 4 5 6 7 8 9; do
        mkdir -p tree/$a/$b
        for c in 0 1 2 3 4 5 6 7 8 9; do
            echo "file $a$b$c: $((a * b * c)) words of $((a + b + c))" >tree/$a/$b/$c.txt
        done
    done
done
echo "find"
find tree -type f | wc -l
find tree -type d | wc -l
find tree -name '7.txt' -path '*/3/*' | sort
find tree -type f -size -30c | sort | head -n 3
touch -d @1000 old
find tree -type f -newer old -name 9.txt | wc -l
rm old
find tree/1 -type f -exec cat {} + | wc
echo "grep"
grep -r 'words of 13' tree | wc -l
grep -rl ' 512 ' tree | sort
grep -rc words tree/5/5 | sort | head -n 2
grep -rE '^file (.)\1\1:' tree | sort
echo "sed and awk"
cat tree/4/*/*.txt | sed -n 's/^file \([0-9]*\): \([0-9]*\).*/\2 \1/p' | sort -n | tail -n 2
find tree -type f | sort | xargs cat | awk '{ n++; s += $3; w += $6 } END { print n, s, w }'
find tree -name 5.txt | sort | head -n 50 | xargs sed -i 's/words/numbers/'
grep -rl numbers tree | wc -l
echo "sort and uniq"
find tree -type f | sort | xargs cut -d ' ' -f 6 | sort -n | uniq -c | sort -rn | head -n 4
find tree -type f -print | sort -r | head -n 2
find tree -type f | sort | xargs cat | sort -k 3,3n -k 2,2r | tail -n 3
echo "sums"
find tree -type f | sort | xargs md5sum | md5sum
find tree -type f | sort | xargs cat | sha256sum
find tree -type f | sort | xargs sha1sum | sha512sum
echo "archives"
tar cf tree.tar tree
tar tf tree.tar | wc -l
mkdir copy
tar xf tree.tar -C copy
diff -r tree copy/tree && echo "the same"
find tree -type f | sort | xargs cat >all
gzip -9 -c all >all.gz
gunzip -c all.gz | cmp - all && echo "the same"
gzip -d <all.gz | md5sum
tar czf tree.tgz -C copy tree
tar xzf tree.tgz -O tree/3/3/3.txt
find tree | sort | cpio -o -H newc 2>/dev/null | cpio -t 2>/dev/null | wc -l
echo "moving"
mv tree/0 tree/zero
ls tree | tr '\n' ' '
cp -a tree/9 tree/copy
diff -r tree/9 tree/copy && echo "the same"
ln -s 9/9/9.txt tree/link
cat tree/link
ln tree/8/8/8.txt tree/hard
stat -c '%h %s %F' tree/hard
chmod 600 tree/hard
ls -l tree/8/8/8.txt | cut -c 1-10
du -s tree >/dev/null && echo "du"
rm -r tree/copy
find tree -name '[0-4].txt' -exec rm {} +
find tree -type f | wc -l
rm -rf tree copy
ls
