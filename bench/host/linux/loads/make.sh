# Builds a program of 25 files.
cd /tmp/project && make -s -j4 clean && make -s -j4
