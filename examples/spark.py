"""The rows of a Spark data frame that stand for the others, and those that do not belong. It needs pyspark 4, pyarrow and Java.

Run it with a Parquet file or folder: ``python spark.py points.parquet``. Executors need mosaic-select, too.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from mosaic import MOSAIC

if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    rows = spark.read.parquet(sys.argv[1])
    model = MOSAIC(20).fit(rows)
    print(model.select(rows).to_pandas())
    print(f"{model.is_outlier_.sum():,} of {len(model.is_outlier_):,} rows are outliers.")
