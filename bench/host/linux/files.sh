# A shell script over 1,000 files: makes them, looks at each, reads them all, and
# removes them. Prints a sum that is the same everywhere.
dir=/tmp/files
mkdir $dir
i=0
while [ $i -lt 1000 ]; do
    echo "file $i of a thousand, line one
and line two of it" > $dir/$i
    i=$((i + 1))
done
lines=0
for file in $dir/*; do
    [ -f $file ] && [ -s $file ] || echo "$file is missing"
    while read -r line; do
        lines=$((lines + 1))
    done < $file
done
found=$(find $dir -type f | wc -l)
named=$(grep -l "file 9" $dir/* | sort | wc -l)
sum=$(cat $dir/* | sort | md5sum)
rm -r $dir
echo "sum $lines $found $named $sum"
