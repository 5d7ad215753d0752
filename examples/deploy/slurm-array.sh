#!/bin/sh
# An archive in sixteen shares on a Slurm cluster: sbatch slurm-array.sh /archive /subtitles
#SBATCH --job-name=subtitles
#SBATCH --array=1-16
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
exec speech-translate translate "$1" --output-dir "$2" --config demo --shard auto
