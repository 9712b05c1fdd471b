#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`feign discover` where calls that synchronise show who waits for whom: MPI, pipes, locks. The programs of
tests/apps/silent with messages in place of flags, each with its own log of who waited for whom."""
import os
import shutil
import signal
import subprocess
import time

import silent
from harness import FEIGN, Skip, Tmp, feign, main, refuses


def discover(tmp, *command, options=(), name="o"):
    out = os.path.join(tmp, name)
    r = feign("discover", "-o", out, *options, "--", *command, timeout=400)
    assert r.status == 0, r.err
    return silent.load(out)


def ranks(tmp, mode, *words, nodes=3, options=()):
    program = os.path.join(tmp, "silent-mpi")
    if not os.path.exists(program):
        program = silent.build(tmp, mpi=True)
    folder = silent.data(os.path.join(tmp, "d"))
    report = discover(tmp, *silent.mpirun(nodes), program, mode, folder, *words, options=[*silent.leave_out(folder), *options], name=mode)
    assert [n["name"] for n in report["nodes"]] == [f"rank:{i}" for i in range(nodes)], report["nodes"]
    missed, wrong, least = silent.compare(folder, report)
    assert not missed and not wrong, (mode, missed[:5], wrong[:5])
    assert report["dependencies_kept"] <= 1.2 * least, (mode, report["dependencies_kept"], least)
    return report


def test_messages_and_collectives_show_every_dependency_in_one_run():
    with Tmp() as tmp:
        silent.mpirun(1)
        for mode in silent.MODES:
            report = ranks(tmp, mode, "rounds=2", "compute=50", options=["--nodes", "none"])
            assert report["runs"] == 1 and report["delays"] == 0, report
            assert {d["means"] for d in report["dependencies"]} == {"shown"}


def test_throttling_ranks_finds_the_same():
    with Tmp() as tmp:
        silent.mpirun(1)
        for mode in "pseudosync", "halo":
            report = ranks(tmp, mode, "rounds=1", "compute=50")
            assert report["runs"] == 4
            assert all("throttling" in d["means"] for d in report["dependencies"]), report["dependencies"]


def test_what_calls_show_needs_few_delays():
    with Tmp() as tmp:
        silent.mpirun(1)
        report = ranks(tmp, "pseudosync", "rounds=60", "compute=50", options=["--adaptive"])
        assert report["delays"] < sum(n["calls"] for n in report["nodes"]) / 4, report["delays"]


def test_ranks_in_two_network_namespaces():
    if os.geteuid() != 0 or not shutil.which("ip"):
        raise Skip("two network namespaces want root and ip")
    with Tmp() as tmp:
        mpirun = silent.mpirun(4)
        name, net = f"feign{os.getpid()}", f"10.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
        try:
            for command in (f"ip netns add {name}", f"ip link add {name}a type veth peer name {name}b", f"ip link set {name}b netns {name}",
                            f"ip addr add {net}.1/24 dev {name}a", f"ip link set {name}a up", f"ip -n {name} addr add {net}.2/24 dev {name}b",
                            f"ip -n {name} link set {name}b up", f"ip -n {name} link set lo up"):
                if subprocess.run(command.split(), stderr=subprocess.PIPE, check=False).returncode != 0:
                    raise Skip(f"not possible here: {command}")
            with open(os.path.join(tmp, "rsh"), "w", encoding="ascii") as f:
                f.write(f"#!/bin/sh\nshift\nexec ip netns exec {name} sh -c \"$*\"\n")
            os.chmod(os.path.join(tmp, "rsh"), 0o755)
            mca = f"--mca plm_rsh_agent {tmp}/rsh --mca btl tcp,self --mca oob_tcp_if_include {net}.0/24 --mca btl_tcp_if_include {net}.0/24"
            command = [*mpirun, *mca.split(), "--host", f"{net}.1:2,{net}.2:2"]
            if subprocess.run([*command, "true"], timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
                raise Skip("mpirun does not get across network namespaces here")
            program, folder = silent.build(tmp, mpi=True), silent.data(os.path.join(tmp, "d"))
            report = discover(tmp, *command, program, "pseudosync", folder, "rounds=1", options=silent.leave_out(folder))
            missed, wrong, _ = silent.compare(folder, report)
            assert not missed and not wrong, (missed, wrong)
        finally:
            subprocess.run(["ip", "link", "del", f"{name}a"], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


class TwoHosts:
    """This host and one with processes, network, names and memory of its own; files are shared, but for `scratch` and
    /dev/shm. `reach` starts a command there, in an environment of its own."""

    def __init__(self, tmp):
        self.tmp, self.scratch, self.name, self.holder = tmp, os.path.join(tmp, "scratch"), f"f{os.getpid()}", None
        self.net = f"10.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"

    def __enter__(self):
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
            raise Skip("two hosts in namespaces want root, ip and nsenter")
        os.mkdir(self.scratch)
        script = f"mount -t tmpfs tmp {self.scratch} && mount -t tmpfs shm /dev/shm && hostname far && echo ready && exec sleep 1000"
        self.holder = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts", "--net",
                                        "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            if self.holder.stdout.readline() != b"ready\n":
                raise Skip("namespaces are not permitted here")
            with open(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children", encoding="ascii") as f:
                inside = f.read().split()[0]
            enter = f"nsenter -t {inside} -m -p -i -u -n"
            for command in (f"ip link add {self.name}a type veth peer name {self.name}b", f"ip link set {self.name}b netns {inside}",
                            f"ip addr add {self.net}.1/24 dev {self.name}a", f"ip link set {self.name}a up",
                            f"{enter} ip addr add {self.net}.2/24 dev {self.name}b", f"{enter} ip link set {self.name}b up", f"{enter} ip link set lo up"):
                if subprocess.run(command.split(), stderr=subprocess.PIPE, check=False).returncode != 0:
                    raise Skip(f"not possible here: {command}")
        except BaseException:
            self.__exit__()
            raise
        self.reach = os.path.join(self.tmp, "reach")
        kept = " ".join(f"{k}={os.environ[k]}" for k in ("PATH", "HOME", "LD_LIBRARY_PATH") if k in os.environ)
        with open(self.reach, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\nshift\nexec {enter} env -i {kept} TMPDIR={self.scratch} sh -c \"$*\"\n")
        os.chmod(self.reach, 0o755)
        return self

    def mpirun(self, reach=None):
        mca = f"--mca btl tcp,self --mca oob_tcp_if_include {self.net}.0/24 --mca btl_tcp_if_include {self.net}.0/24"
        command = [*silent.mpirun(4), *mca.split(), "--mca", "plm_rsh_agent", reach or self.reach, "--host", f"{self.net}.1:2,{self.net}.2:2"]
        if subprocess.run([*command, "true"], timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise Skip("mpirun does not get across namespaces here")
        return command

    def ssh(self):
        """An sshd there, with keys of its own; how it is reached."""
        sshd = shutil.which("sshd") or "/usr/sbin/sshd"
        if not shutil.which("ssh") or not os.path.exists(sshd):
            raise Skip("sshd is not there")
        for key in "key", "hostkey":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.tmp, key)], check=True)
        config = os.path.join(self.tmp, "sshd_config")
        with open(config, "w", encoding="ascii") as f:
            f.write(f"Port 2222\nListenAddress {self.net}.2\nHostKey {self.tmp}/hostkey\nAuthorizedKeysFile {self.tmp}/key.pub\nPidFile none\n"
                    f"UsePAM no\nStrictModes no\nPermitRootLogin yes\nSetEnv TMPDIR={self.scratch}\n")
        subprocess.run([self.reach, "far", f"mkdir -p /run/sshd && {sshd} -f {config} -E {self.tmp}/sshd.log"], check=True)
        return (f"ssh -F none -p 2222 -i {self.tmp}/key -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
                "-o LogLevel=ERROR -o ConnectTimeout=10")

    def left(self):
        """What feign left there."""
        done = subprocess.run([self.reach, "far", "ls", self.scratch, "/dev/shm"], stdout=subprocess.PIPE, check=True)
        return [word for word in done.stdout.decode().split() if "feign-discover" in word]

    def __exit__(self, *_):
        subprocess.run(["ip", "link", "del", f"{self.name}a"], stderr=subprocess.DEVNULL, check=False)
        self.holder.kill()
        self.holder.wait()


def test_two_hosts_each_with_a_watchdog():
    with Tmp() as tmp, TwoHosts(tmp) as hosts:
        command = hosts.mpirun()
        program, folder = silent.build(tmp, mpi=True), silent.data(os.path.join(tmp, "d"))
        os.environ["TMPDIR"] = hosts.scratch
        try:
            words = [*command, program, "pseudosync", folder, "rounds=2"]
            refuses("discover", "-o", os.path.join(tmp, "one"), *silent.leave_out(folder), "--", *words, text="other hosts .--hosts.|another host .--hosts.")
            words[1:1] = ["-x", "PATH"]  # its own way of handing the environment on
            options = [*silent.leave_out(folder), "--hosts", f"{hosts.net}.2", "--reach", hosts.reach]
            shown = discover(tmp, *words, options=[*options, "--nodes", "none"], name="shown")
            missed, wrong, _ = silent.compare(folder, shown)
            assert not missed and not wrong, (missed, wrong)
            assert shown["runs"] == 1 and {d["means"] for d in shown["dependencies"]} == {"shown"}, shown
            for name in ("o0", "o1", "o2"):  # where others use the processors, throttling may not tell a wait from noise
                report = discover(tmp, *words, options=options, name=name)
                if {d["means"] for d in report["dependencies"]} == {"throttling+shown"}:
                    break
            refuses("discover", "-o", os.path.join(tmp, "no"), "--hosts", "far", "--reach", "false", "--", *words, text="host far: false ended before")
        finally:
            del os.environ["TMPDIR"]
        assert [n["name"] for n in report["nodes"]] == [f"rank:{i}" for i in range(4)], report["nodes"]
        missed, wrong, least = silent.compare(folder, report)
        assert not missed and not wrong, (missed, wrong)
        assert report["dependencies_kept"] <= 1.2 * least
        assert {d["means"] for d in report["dependencies"]} == {"throttling+shown"}, report["dependencies"]
        assert len(os.listdir(os.path.join(tmp, name, "raw"))) == 16
        assert hosts.left() == [] and not [name for name in os.listdir(hosts.scratch) if "feign-discover" in name]
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("replay", os.path.join(tmp, name, "trace.feign"), "--root", root, "--order", "stream", "--pace", "think", "--require", "1")
        assert r.status == 0, r.out + r.err


def test_hosts_are_reached_by_a_real_ssh():
    with Tmp() as tmp, TwoHosts(tmp) as hosts:
        ssh = hosts.ssh()
        command = hosts.mpirun(ssh)
        program, folder = silent.build(tmp, mpi=True), silent.data(os.path.join(tmp, "d"))
        os.environ["TMPDIR"] = hosts.scratch
        try:
            words = [*command, program, "pipeline", folder, "rounds=2"]
            for i in range(3):  # where others use the processors, a wait may be missed
                report = discover(tmp, *words, options=[*silent.leave_out(folder), "--hosts", f"{hosts.net}.2", "--reach", ssh, "--nodes", "1"], name=f"o{i}")
                missed, wrong, _ = silent.compare(folder, report)
                if not missed:
                    break
            refuses("discover", "-o", os.path.join(tmp, "no"), "--hosts", f"{hosts.net}.2", "--reach", ssh.replace("-p 2222", "-p 2223"), "--", *words,
                    text="(?s)refused.*host .*: ssh .* ended before a post was there")
        finally:
            del os.environ["TMPDIR"]
        assert not missed, missed
        assert report["runs"] == 2 and report["delays"] > 0, report
        assert hosts.left() == [] and not [name for name in os.listdir(hosts.scratch) if "feign-discover" in name]


def test_this_host_may_be_among_the_hosts():
    with Tmp() as tmp:
        reach, folder = os.path.join(tmp, "reach"), os.path.join(tmp, "d")
        os.mkdir(folder)
        with open(reach, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nshift\nexec sh -c \"$*\"\n")
        os.chmod(reach, 0o755)
        r = feign("discover", "-o", os.path.join(tmp, "o"), "--only", folder, "--hosts", "localhost", "--reach", reach, "--",
                  "sh", "-c", f"echo x > {folder}/f")
        assert r.status == 0 and "localhost: is this host" in r.err, r.err
        assert not [name for name in os.listdir(tmp) if "feign-discover" in name]


def test_ctrl_c_leaves_nothing_on_either_host():
    with Tmp() as tmp, TwoHosts(tmp) as hosts:
        program, folder = silent.build(tmp, mpi=True), silent.data(os.path.join(tmp, "d"))
        there = [hosts.reach, "far", "pgrep -x silent-mpi"]
        command = [FEIGN, "discover", "-q", "-o", os.path.join(tmp, "o"), "--hosts", f"{hosts.net}.2", "--reach", hosts.reach, "--",
                   *hosts.mpirun(), program, "pseudosync", folder, "rounds=1000"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": hosts.scratch}) as p:
            end = time.monotonic() + 20
            while subprocess.run(there, stdout=subprocess.DEVNULL, check=False).returncode != 0 and time.monotonic() < end:
                time.sleep(0.05)
            p.send_signal(signal.SIGINT)
            err = p.communicate(timeout=60)[1].decode()
        if "interrupted by signal 2" not in err:
            raise Skip(f"mpirun does not get across namespaces here: {err[-200:]}")
        assert p.returncode == 2
        assert hosts.left() == [] and os.listdir(tmp + "/d") and not os.path.exists(os.path.join(tmp, "o"))
        assert not [name for name in os.listdir(hosts.scratch) if "feign-discover" in name]


def test_ranks_that_cannot_be_watched_are_an_error():
    with Tmp() as tmp:
        script = f"echo x > {tmp}/f"
        refuses("discover", "-o", os.path.join(tmp, "o"), "--", "env", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "sh", "-c", script,
                text="of 2 ranks 1 were seen")
        assert not os.path.exists(os.path.join(tmp, "o"))


def test_a_pipe_shows_who_waits():
    with Tmp() as tmp:
        folder = os.path.join(tmp, "d")
        os.mkdir(folder)
        script = f"{{ echo a > {folder}/x; echo go; }} | {{ read l; read m < {folder}/x; echo $m > {folder}/y; }}"
        report = discover(tmp, "sh", "-c", script, options=["--only", folder, "--nodes", "none"])
        shown = {(d["node"], d["call"], d["on_node"], d["shown_by"]) for d in report["dependencies"]}
        assert shown == {(1, 0, 0, "read")}, report["dependencies"]
        assert all(d["on_call"] == report["nodes"][0]["calls"] - 1 for d in report["dependencies"])


main(globals())
