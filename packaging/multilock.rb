# Homebrew: Formula/multilock.rb
class Multilock < Formula
  desc "Lock and job runner for clusters whose hosts share only a filesystem"
  homepage "https://github.com/multilock/go"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/multilock/go/releases/download/v@VERSION@/multilock-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@SHA_darwin-arm64@"
    end
    on_intel do
      url "https://github.com/multilock/go/releases/download/v@VERSION@/multilock-@VERSION@-darwin-amd64.tar.gz"
      sha256 "@SHA_darwin-amd64@"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/multilock/go/releases/download/v@VERSION@/multilock-@VERSION@-linux-arm64.tar.gz"
      sha256 "@SHA_linux-arm64@"
    end
    on_intel do
      url "https://github.com/multilock/go/releases/download/v@VERSION@/multilock-@VERSION@-linux-amd64.tar.gz"
      sha256 "@SHA_linux-amd64@"
    end
  end

  def install
    bin.install "multilock", "multilock-full"
    man1.install Dir["man/man1/*"]
    man7.install Dir["man/man7/*"]
    bash_completion.install "completions/multilock.bash" => "multilock"
    zsh_completion.install "completions/multilock.zsh" => "_multilock"
    fish_completion.install "completions/multilock.fish"
  end

  test do
    assert_equal "ran\n", shell_output("#{bin}/multilock -d #{testpath} run -q -n hello -- echo ran")
  end
end
