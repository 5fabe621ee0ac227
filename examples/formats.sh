#!/bin/sh
# One table in many formats: every one of them gives the same picks and the same outliers.
#
#   sh examples/formats.sh [FOLDER]
#
# needs the command mosaic, iconv, xz and python3.
set -eu
folder=${1:-mosaic-formats}
mkdir -p "$folder/parts"
sed 's/Rome/Köln/' "$(dirname "$0")/customers.csv" > "$folder/plain.csv"
cd "$folder"

# What other programs write.
iconv -f utf-8 -t latin1 plain.csv > latin1.csv
iconv -f utf-8 -t utf-16 plain.csv > utf16.csv
tr , ';' < plain.csv > semicolons.csv
tr , '\t' < plain.csv > tabs.txt
gzip -c plain.csv > plain.csv.gz
xz -c plain.csv > plain.csv.xz
python3 -m zipfile -c plain.zip plain.csv
sed -n '1,100p' plain.csv > parts/january.csv
sed -n '1p;101,$p' plain.csv > parts/later.csv
for ending in tsv json jsonl parquet feather; do # mosaic does not compare the columns that it adds itself
    mosaic outliers plain.csv --all --quiet --force -o "plain.$ending"
done

first_cells() { sed "s/[,;$(printf '\t')].*//"; } # the output is written as the input is

mosaic select plain.csv -k 5 --quiet -o - | first_cells > picks.txt
mosaic outliers plain.csv --quiet -o - | first_cells > outliers.txt
for file in latin1.csv utf16.csv semicolons.csv tabs.txt plain.csv.gz plain.csv.xz plain.zip 'parts/*.csv' \
    plain.tsv plain.json plain.jsonl plain.parquet plain.feather; do
    mosaic select "$file" -k 5 --quiet -o - | first_cells | cmp - picks.txt
    mosaic outliers "$file" --quiet -o - | first_cells | cmp - outliers.txt
    echo "$file: the same picks and outliers"
done
rm -f pipe && mkfifo pipe # what <(...) of bash is, too
cat plain.csv > pipe &
mosaic select pipe -k 5 --quiet | first_cells | cmp - picks.txt
cat plain.csv | mosaic select - -k 5 --quiet | first_cells | cmp - picks.txt
echo "a named pipe and standard input: the same picks"
