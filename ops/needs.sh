# shellcheck shell=bash
# What a build of nexus needs, and where it goes. Sourced by ops/up and ops/test, never run.

# The build's output is kept out of the checkout, so that a fresh clone does not compile RocksDB
# again.
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/nexus/target}"
[[ "$CARGO_TARGET_DIR" == /* ]] || CARGO_TARGET_DIR="$PWD/$CARGO_TARGET_DIR"
export CARGO_TARGET_DIR

# RocksDB has this many C++ files, more or less: only for the line that shows progress.
readonly ROCKSDB_FILES=340

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# Sets `elapsed` to the time since $1 (a value of SECONDS) in words.
elapsed_since() {
  local seconds=$((SECONDS - $1))
  if ((seconds < 60)); then
    elapsed="$seconds s"
  else
    elapsed="$((seconds / 60)) min $((seconds % 60)) s"
  fi
}

# Finds cargo, also where rustup put it and the shell was not told.
find_cargo() {
  if ! command -v cargo >/dev/null 2>&1; then
    local home_bin="${CARGO_HOME:-$HOME/.cargo}/bin"
    [[ -x "$home_bin/cargo" ]] || die "cargo is missing. Install Rust, then start this again:
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    PATH="$home_bin:$PATH"
    export PATH
  fi
  local wanted version
  wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
  version=$(cargo --version) || die "cargo does not run here, see above. The toolchain is named in
rust-toolchain.toml; rustup installs it with: rustup toolchain install"
  version=$(awk '{print $2}' <<<"$version")
  if [[ "$(printf '%s\n%s\n' "$wanted" "$version" | sort -V | head -n 1)" != "$wanted" ]]; then
    die "cargo $version is too old, $wanted or newer is needed: rustup update"
  fi
}

has_libclang() {
  [[ -n "${LIBCLANG_PATH:-}" ]] && return 0
  local place
  for place in /usr/lib/llvm*/lib /usr/lib64/llvm*/lib /usr/lib /usr/lib64 /usr/lib/*-linux-gnu* \
    /usr/local/lib /opt/homebrew/opt/llvm/lib /usr/local/opt/llvm/lib \
    /Library/Developer/CommandLineTools/usr/lib \
    /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib; do
    compgen -G "$place/libclang.so*" >/dev/null && return 0
    compgen -G "$place/libclang-*.so*" >/dev/null && return 0
    [[ -e "$place/libclang.dylib" ]] && return 0
  done
  return 1
}

# Whether a C++ program compiles: the compiler alone is not enough, its headers are a package of
# their own on some systems.
has_cxx() {
  command -v clang >/dev/null 2>&1 && command -v clang++ >/dev/null 2>&1 || return 1
  printf '#include <string>\nstd::string s;\n' | clang++ -x c++ -fsyntax-only - 2>/dev/null
}

# Installs Debian's packages.
apt_install() {
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null 2>&1 \
      || die "This needs root, and sudo is not there. As root: apt-get install -y $*"
    as_root=(sudo)
  fi
  say "Installing with apt-get: $*"
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends)
  # The first try spares the update where the lists are fresh.
  "${install[@]}" "$@" >/dev/null 2>&1 && return 0
  "${as_root[@]}" apt-get update >&2 || say "apt-get update failed; trying with the old lists"
  "${install[@]}" "$@" >&2 || die "apt-get could not install: $*"
}

# Makes sure that the compilers are there: Debian's packages are installed, elsewhere the exact
# command is printed.
need_compilers() {
  local packages=()
  has_cxx || packages+=(clang)
  has_libclang || packages+=(libclang-dev)
  command -v cc >/dev/null 2>&1 || packages+=(gcc libc6-dev)
  command -v make >/dev/null 2>&1 || packages+=(make)
  ((${#packages[@]} == 0)) && return 0
  if command -v apt-get >/dev/null 2>&1; then
    apt_install "${packages[@]}"
  elif [[ "$(uname -s)" == Darwin ]]; then
    die "RocksDB needs clang and libclang. Install them, then start this again:
  xcode-select --install
  brew install llvm    # only if libclang is still missing after that"
  elif command -v dnf >/dev/null 2>&1; then
    die "RocksDB needs clang and libclang. Install them, then start this again:
  sudo dnf install clang clang-devel gcc make"
  else
    die "RocksDB needs clang, clang++ and libclang, Rust needs a linker (cc), jemalloc make.
Install them with your system's package manager (Arch: pacman -S clang gcc make; Alpine: apk add
clang clang-dev g++ make; openSUSE: zypper install clang clang-devel gcc make), then start again."
  fi
  has_cxx || die "clang++ still compiles no C++ program. See what it says:
  echo '#include <string>' | clang++ -x c++ -fsyntax-only -"
  has_libclang || die "libclang is still not found: set LIBCLANG_PATH to the folder that holds it"
}

rocksdb_is_built() {
  compgen -G "$CARGO_TARGET_DIR/debug/build/librocksdb-sys-*/out/librocksdb.a" >/dev/null
}

# Says why the first build is long, and starts a line of progress every half minute. Sets
# `progress_pid`, or leaves it empty when RocksDB is there.
progress_pid=""
progress_told=""
start_progress() {
  rocksdb_is_built && return 0
  if [[ -z "$progress_told" ]]; then
    say "
The first build takes 10 to 20 minutes on two cores: RocksDB, a C++ library of about $ROCKSDB_FILES
files, is compiled once. Later builds take seconds. It all goes to
$CARGO_TARGET_DIR (about 3 GB; remove it to have the space back).
"
    progress_told=yes
  fi
  local start=$SECONDS
  (
    trap 'kill $! 2>/dev/null; exit 0' TERM
    while ! rocksdb_is_built; do
      sleep 30 &
      wait $!
      count=$(find "$CARGO_TARGET_DIR"/debug/build/librocksdb-sys-*/out -name '*.o' 2>/dev/null \
        | wc -l)
      elapsed_since "$start"
      ((count == 0)) || say "  RocksDB: $count of about $ROCKSDB_FILES files compiled, $elapsed"
    done
  ) &
  progress_pid=$!
}

stop_progress() {
  [[ -z "$progress_pid" ]] && return 0
  # It may have ended by itself, and a wait for what was ended is no failure.
  kill "$progress_pid" 2>/dev/null || true
  wait "$progress_pid" 2>/dev/null || true
  progress_pid=""
}
