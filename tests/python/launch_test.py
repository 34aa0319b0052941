# SPDX-License-Identifier: Apache-2.0
"""Which launcher has started a program; programs that start their own servers."""

import json
import os
import pathlib
import signal
import sys
import unittest

import covey
from covey import launch
from tests import report
from tests.process import cluster, program
from tests.python import interpreter, torchrun

_PROGRAM = pathlib.Path(__file__).parent / "launched.py"

# As the launchers set them, without what nobody reads; torchrun, Open MPI, MPICH and Slurm captured
# from Debian 12's, the others after their documentation.
_CAPTURES = {
    "COVEY_RANK": ({"COVEY_RANK": "3", "RANK": "0", "WORLD_SIZE": "2"}, (3, None, 0, None)),
    "torchrun": ({
        "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "RANK": "5",
        "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1",
        "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1"}, (5, 8, 1, 4)),
    "horovodrun": ({
        "HOROVOD_RANK": "2", "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_RANK": "0",
        "HOROVOD_LOCAL_SIZE": "2", "HOROVOD_CROSS_RANK": "1"}, (2, 4, 0, 2)),
    "Open MPI": ({
        "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_NODE_RANK": "1", "PMIX_RANK": "1"},
                 (1, 2, 1, 2)),
    "MPICH": ({
        "HYDI_CONTROL_FD": "7", "PMI_RANK": "1", "PMI_SIZE": "3", "MPI_LOCALRANKID": "1",
        "MPI_LOCALNRANKS": "3"}, (1, 3, 1, 3)),
    "srun": ({
        "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "4",
        "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "SLURM_NODEID": "1"}, (3, 4, 1, None)),
    "an indexed job of Kubernetes": (
        {"JOB_COMPLETION_INDEX": "2", "COVEY_WORLD_SIZE": "3"}, (2, 3, 0, None)),
    "TF_CONFIG": ({
        "TF_CONFIG": '{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]},'
                     ' "task": {"type": "worker", "index": 1}}'}, (2, 3, 0, None)),
    "DMLC_ROLE": ({"DMLC_ROLE": "worker", "DMLC_NUM_WORKER": "2", "DMLC_WORKER_ID": "1"},
                  (1, 2, 0, None)),
    "RANK and WORLD_SIZE": ({"RANK": "0", "WORLD_SIZE": "2"}, (0, 2, 0, None)),
    "nothing": ({"PATH": "/bin"}, (None, None, 0, None)),
}


class DetectTest(unittest.TestCase):
    def test_each_launcher(self):
        for name, (environment, expected) in _CAPTURES.items():
            with self.subTest(name):
                found = launch.detect(environment)
                self.assertEqual(name, found.launcher)
                self.assertEqual(expected, (found.rank, found.size, found.local_rank,
                                            found.local_size))
                self.assertEqual((), found.notes)

    def test_the_innermost_counts(self):
        environment = {**_CAPTURES["srun"][0], **_CAPTURES["torchrun"][0]}
        self.assertEqual("torchrun", launch.detect(environment).launcher)
        # srun --mpi=pmi2 sets what MPICH's own launcher sets, but for its mark.
        environment = {**_CAPTURES["srun"][0], "PMI_RANK": "9", "PMI_SIZE": "10"}
        self.assertEqual(("srun", 3), (launch.detect(environment).launcher,
                                       launch.detect(environment).rank))

    def test_the_script_of_sbatch_is_one_process(self):
        found = launch.detect({"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"})
        self.assertEqual(("nothing", None, None), (found.launcher, found.rank, found.size))
        self.assertIn("srun", found.notes[0])
        self.assertIn("77", launch.explain({"SLURM_JOB_ID": "77", "SLURM_NTASKS": "4"}))
        self.assertEqual((), launch.detect({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1"}).notes)

    def test_a_size_without_a_rank_says_nothing(self):
        self.assertEqual("nothing", launch.detect({"WORLD_SIZE": "4"}).launcher)

    def test_mistakes_name_the_variable(self):
        torchrun = _CAPTURES["torchrun"][0]
        for change, expected in [
                ({"RANK": "8"}, "RANK is 8 and WORLD_SIZE is 8"),
                ({"RANK": "-1"}, "RANK is '-1', which is no number"),
                ({"WORLD_SIZE": ""}, "WORLD_SIZE is ''"),
                ({"LOCAL_RANK": "4"}, "LOCAL_RANK is 4 and LOCAL_WORLD_SIZE is 4"),
                ({"RANK": "1" * 1000}, "RANK is '1111")]:
            with self.assertRaisesRegex(covey.InvalidArgument, expected):
                launch.detect({**torchrun, **change})
        without = {name: value for name, value in torchrun.items() if name != "WORLD_SIZE"}
        with self.assertRaisesRegex(covey.InvalidArgument, "WORLD_SIZE is not set"):
            launch.detect(without)
        for text in ["[]", "{}", '{"cluster": 1, "task": 2}', "[" * 100000,
                     '{"cluster": {"worker": []}, "task": {"type": "worker", "index": 0}}',
                     '{"cluster": {"worker": ["a"]}, "task": {"type": "ps", "index": 0}}']:
            with self.assertRaisesRegex(covey.InvalidArgument, "TF_CONFIG"):
                launch.detect({"TF_CONFIG": text})
        with self.assertRaisesRegex(covey.InvalidArgument, "DMLC_ROLE is 'server'"):
            launch.detect({"DMLC_ROLE": "server"})

    def test_explains(self):
        self.assertEqual(
            "launched by srun\nrank: 3\nsize: 4\nlocal rank: 1\nlocal size: not told\n"
            "variables: SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID",
            launch.explain(_CAPTURES["srun"][0]))


class LaunchedTest(cluster.ProcessTest):
    def test_as_a_program(self):
        for rank, code, expected in (("1", 0, "rank: 1"), ("x", 1, "RANK is 'x'")):
            run = self.run_to_end("explain", [sys.executable, "-W", "error", "-m", "covey.launch"],
                                  torchrun.environment(self.folder, RANK=rank, WORLD_SIZE="2"))
            self.assertEqual(code, run.code, run)
            self.assertIn(expected, str(run))

    def outcome(self, child, code=0):
        self.assertEqual(code, child.exit_code(120), child)
        return json.loads(child.lines("stdout")[-1])

    def start_program(self, way, rank, size):
        return self.start(f"worker {rank}", [sys.executable, _PROGRAM, way], torchrun.environment(
            self.folder, TORCHELASTIC_RUN_ID="none", RANK=str(rank), WORLD_SIZE=str(size),
            LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size)))

    def test_join_takes_the_launchers_rank(self):
        job = cluster.Cluster(self, workers=2)
        workers = [self.start(f"worker {rank}", [sys.executable, _PROGRAM, "join"], torchrun.environment(
            self.folder, COVEY_SCHEDULER=job.address, COVEY_JOB=cluster.JOB, OMPI_COMM_WORLD_RANK=str(rank),
            OMPI_COMM_WORLD_SIZE="3", OMPI_COMM_WORLD_LOCAL_RANK=str(rank)))
            for rank in (1, 0)]
        for worker, rank in zip(workers, (1, 0)):
            self.assertEqual({"tables": 0, "rank": rank, "size": 2, "groups": 1, "local_rank": rank,
                              "sum": 3.0},
                             self.outcome(worker))
            self.assertIn("Open MPI has started 3 processes, and the job has 2 workers", str(worker))

    def test_the_first_starts_the_servers(self):
        workers = [self.start_program("init", rank, 4) for rank in (3, 2, 1, 0)]
        for worker, rank in zip(workers, (3, 2, 1, 0)):
            self.assertEqual({"tables": 0, "rank": rank, "size": 4, "groups": 2, "local_rank": rank,
                              "sum": 3.0},
                             self.outcome(worker))
        self.assertEqual([], [name for name in os.listdir(self.folder)
                              if name.startswith("covey-init")])

    def test_what_a_killed_job_has_left_misleads_nobody(self):
        folder = pathlib.Path(self.folder, f"covey-init-{os.getuid()}-{os.getpid()}-0")
        folder.mkdir()
        (folder / "ready").write_text("1 1 1\n", encoding="ascii")
        late = self.start_program("init-1", 1, 2)
        program.await_true(lambda: late.running(), "the second worker")
        workers = [self.start_program("init-1", 0, 2), late]
        self.assertEqual([0, 1], [self.outcome(worker)["rank"] for worker in workers])

    def test_one_process_without_a_launcher(self):
        run = self.start("worker", [sys.executable, _PROGRAM, "init-1"],
                         torchrun.environment(self.folder))
        self.assertEqual({"tables": 0, "rank": 0, "size": 1, "groups": 1, "local_rank": 0,
                          "sum": 1.0},
                         self.outcome(run))
        self.assertRegex(str(run), "INFO:covey:scheduler at 127.0.0.1:[0-9]+ and 2 servers")

    def test_servers_die_with_the_first(self):
        first = self.start_program("wait", 0, 1)
        first.await_line("joined")
        servers = set(first.descendants()) - {first.pid}
        self.assertEqual(3, len(servers), "a scheduler and two servers")
        os.kill(first.pid, signal.SIGKILL)
        program.await_true(lambda: not any(map(_runs, servers)), "the end of the servers")

    def test_mistakes(self):
        for change, expected in [
                ({"LOCAL_WORLD_SIZE": "1"}, "1 of 2 workers are on this machine"),
                ({"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}, "3 workers cannot be divided into 2"),
                ({"PATH": "/usr/bin:/bin"}, "there is no covey_scheduler on PATH"),
                ({"TORCHELASTIC_RUN_ID": "", "DMLC_ROLE": "worker", "DMLC_NUM_WORKER": "2", "RANK": ""},
                 "not known which of how many"),
                ({"TORCHELASTIC_RUN_ID": "", "JOB_COMPLETION_INDEX": "1"}, "not known which of how"),
                ({"WORLD_SIZE": "x"}, "WORLD_SIZE is 'x'")]:
            environment = torchrun.environment(self.folder, **{
                "TORCHELASTIC_RUN_ID": "none", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0",
                "LOCAL_WORLD_SIZE": "2", **change})
            run = self.run_to_end("worker", [sys.executable, _PROGRAM, "init"], environment)
            self.assertNotEqual(0, run.code, run)
            self.assertIn(expected, str(run))

    @interpreter.needs("torch")
    def test_torchrun_restarts_workers(self):
        # Silence would take longer than the new workers wait.
        job = cluster.Cluster(self, workers=2, scheduler_options=["--silence-min", "10m"])
        run = self.start("torchrun", [*torchrun.command(2), "--max_restarts", "1", _PROGRAM, "restart"],
                         torchrun.environment(self.folder, COVEY_SCHEDULER=job.address,
                                              COVEY_JOB=cluster.JOB))
        self.assertEqual(0, run.exit_code(200), run)
        places = [json.loads(line[line.index("{"):]) for line in run.lines("stdout") if "{" in line]
        self.assertEqual([0, 1], sorted(place["rank"] for place in places))

    @interpreter.needs("torch")
    def test_torchrun_needs_no_other_command(self):
        run = self.start("torchrun", [*torchrun.command(2), _PROGRAM, "init"],
                         torchrun.environment(self.folder))
        self.assertEqual(0, run.exit_code(200), run)
        places = [json.loads(line[line.index("{"):]) for line in run.lines("stdout") if "{" in line]
        self.assertEqual([0, 1], sorted(place["rank"] for place in places))
        self.assertEqual({2}, {place["groups"] for place in places})


def _runs(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    report.main()
