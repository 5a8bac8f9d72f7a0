# Packs a tree, unpacks it beside, compares the two.
rm -rf /tmp/twin
mkdir /tmp/twin && tar -C /tmp -cf - tree | tar -C /tmp/twin -xf - && diff -r /tmp/tree /tmp/twin/tree
