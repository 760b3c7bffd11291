# shellcheck shell=sh
# One worker of an nqueens fleet. What is above has defined `worker`, and has gone to the fleet's folder.
slurm=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
id=${1:-${slurm:-${PBS_JOBID:-${LSB_JOBID:-$JOB_ID}}}}
[ -n "$id" ] || { echo 'no id of this job' >&2; exit 2; }
exec >> logs/"$id".log 2>&1
rm -f ended/"$id"
# The signals that announce an end reach all processes of a job, or this shell alone. The worker drains, this waits.
worker=
told=
trap 'told=1; kill -TERM $worker 2> /dev/null' TERM USR1 USR2
(trap '' USR1 USR2; worker --spool spool/"$id") &
worker=$!
[ -z "$told" ] || kill -TERM $worker
while :; do
    wait $worker
    code=$?
    # More than 128 may be a signal that has come here.
    if [ $code -le 128 ] || ! kill -0 $worker 2> /dev/null; then break; fi
done
# What is in a spool may be reported after a requeue.
[ -s spool/"$id"/results ] || [ -s spool/"$id"/rejected ] || rm -rf spool/"$id"
echo "$code $(uname -n)" > ended/"~$id" && mv ended/"~$id" ended/"$id"
exit "$code"
