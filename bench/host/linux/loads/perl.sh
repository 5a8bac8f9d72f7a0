# Counts words and sorts them.
perl -e 'while (<>) { my @w = split; $n{$w[1]} += $w[2]; $m++ if /9.*end$/; }
    print "$_ $n{$_}\n" for sort { $n{$a} <=> $n{$b} || $a cmp $b } keys %n; print "$m\n";' /tmp/text
