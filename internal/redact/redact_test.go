package redact

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		// URLs
		"pg_dump postgres://ada:top@db/x":                    "pg_dump postgres://ada:...@db/x",
		"pg_dump postgres://ada:to@o/p@db:5432/x?a=b":        "pg_dump postgres://ada:...@db:5432/x?a=b",
		"git clone https://ghp_0123456789abcdefghij@h/r.git": "git clone https://...@h/r.git",
		"curl 'https://h/x?a=1&token=top&b=2'":               "curl 'https://h/x?a=1&token=...&b=2'",
		"curl https://h/x?api_key=top":                       "curl https://h/x?api_key=...",
		"curl ada:top@host":                                  "curl ada:...@host",
		"cp a:b@c://":                                        "cp a:b@c://", // of one letter
		// options
		"x --password top y":                      "x --password ... y",
		"x --password=top y":                      "x --password=... y",
		"x --password='t o p' y":                  "x --password='...' y",
		`x --password t\ o\ p y`:                  "x --password ... y",
		"x -password top -DapiToken=top":          "x -password ... -DapiToken=...",
		"x --db-password1 top":                    "x --db-password1 ...",
		"x --clientSecret=top":                    "x --clientSecret=...",
		"x --password --host h":                   "x --password --host h",
		"x --env=PASSWORD=top;y":                  "x --env=PASSWORD=...;y",
		"helm --set a=1,db.password=top":          "helm --set a=1,db.password=...",
		"mysql -ptop -P 3306 db":                  "mysql -p... -P 3306 db",
		"nice /usr/bin/mysqldump -ptop x":         "nice /usr/bin/mysqldump -p... x",
		"sshpass -p top ssh -p 22 h":              "sshpass -p ... ssh -p 22 h",
		"redis-cli -a top get x":                  "redis-cli -a ... get x",
		"curl -sSu ada:top https://h":             "curl -sSu ada:... https://h",
		"curl --user ada:top https://h":           "curl --user ada:... https://h",
		"http --auth ada:top h":                   "http --auth ada:... h",
		"openssl rsa -passin pass:top":            "openssl rsa -passin pass:...",
		"docker login -u ada -p top h":            "docker login -u ada -p ... h",
		"docker login -ptop h":                    "docker login -p... h",
		"podman --log-level debug login -p top h": "podman --log-level debug login -p ... h",
		"helm registry login -u ada -p top h":     "helm registry login -u ada -p ... h",
		"az login -u ada -p top":                  "az login -u ada -p ...",
		"oc login -u ada -p top h":                "oc login -u ada -p ... h",
		"keytool -list -storepass top -v":         "keytool -list -storepass ... -v",
		"keytool -keypass top -srcstorepass topp -deststorepass toppp -new-storepass t0p": "keytool -keypass ... -srcstorepass ... -deststorepass ... -new-storepass ...",
		"jarsigner -storepass top -keypass topp x.jar a":                                  "jarsigner -storepass ... -keypass ... x.jar a",
		"smbclient //h/s -U ada%top -c ls":                                                "smbclient //h/s -U ada%... -c ls",
		"smbclient -Uada%top //h/s":                                                       "smbclient -Uada%... //h/s",
		"smbclient --user=ada%top //h/s":                                                  "smbclient --user=ada%... //h/s",
		"smbclient --user ada%top //h/s":                                                  "smbclient --user ada%... //h/s",
		"rpcclient -U 'DOM\\ada%t o p' h":                                                 "rpcclient -U 'DOM\\ada%...' h",
		"net rpc info -U ada%top -S h":                                                    "net rpc info -U ada%... -S h",
		"mount -o user=ada,pass=top //h/s /m":                                             "mount -o user=ada,pass=... //h/s /m",
		"ftp -u ada:top h":                                                                "ftp -u ada:top h", // no program that is known
		"lftp -u ada,top h":                                                               "lftp -u ada,... h",
		"wget --http-user ada --http-password top h":                                      "wget --http-user ada --http-password ... h",
		"curl --proxy-header 'X-Auth: top' h":                                             "curl --proxy-header 'X-Auth: ...' h",
		// variables
		"PASSWORD=top make all":                                 "PASSWORD=... make all",
		"env PGPASSWORD=top psql":                               "env PGPASSWORD=... psql",
		"AWS_SECRET_ACCESS_KEY=/top aws":                        "AWS_SECRET_ACCESS_KEY=... aws",
		"A=1 MY_SECRET='to'\\''p' x":                            "A=1 MY_SECRET='...' x",
		"docker run -e MYSQL_PWD=top -eTOKEN=top i":             "docker run -e MYSQL_PWD=... -eTOKEN=... i",
		"TOKEN=top; API_KEY=top;x":                              "TOKEN=...; API_KEY=...;x",
		`sh -c "PASSWORD=top make; x --token 'to p'"`:           `sh -c "PASSWORD=... make; x --token '...'"`,
		`bash -lc 'bash -c "TOKEN=top make all"'`:               `bash -lc 'bash -c "TOKEN=... make all"'`,
		`ssh h 'cd /x && PASSWORD=top make'`:                    `ssh h 'cd /x && PASSWORD=... make'`,
		"sqlx 'Server=x;User Id=y;Password=t,o p;Encrypt=true'": "sqlx 'Server=x;User Id=y;Password=...;Encrypt=true'",
		// headers and other fields
		`curl -H "Authorization: Bearer top" h`:                     `curl -H "Authorization: ..." h`,
		`curl -H"Authorization:Bearer top" h`:                       `curl -H"Authorization:..." h`,
		`curl -H Authorization:\ Bearer\ top h`:                     `curl -H Authorization:\ ... h`,
		`curl --header='PRIVATE-TOKEN: top' h`:                      `curl --header='PRIVATE-TOKEN: ...' h`,
		`echo Authorization: Basic top | nc`:                        `echo Authorization: ... ... | nc`,
		`curl -d '{"user":"a","password": "t,o p","b":1}' h`:        `curl -d '{"user":"a","password": "...","b":1}' h`,
		`curl -d "{\"password\":\"top\",\"b\":1}" h`:                `curl -d "{\"password\":\"...\",\"b\":1}" h`,
		`curl -H "X-Auth: top" h`:                                   `curl -H "X-Auth: ..." h`,
		`curl -H X-Auth-Token:top h`:                                `curl -H X-Auth-Token:... h`,
		`curl -H "X-Auth-Key: top" h`:                               `curl -H "X-Auth-Key: ..." h`,
		`curl -H "Api-Key: top" h`:                                  `curl -H "Api-Key: ..." h`,
		`curl -H "X-Vault-Token: top" h`:                            `curl -H "X-Vault-Token: ..." h`,
		`curl -H "X-Amz-Security-Token: top" h`:                     `curl -H "X-Amz-Security-Token: ..." h`,
		`curl -H X-Auth:\ top h`:                                    `curl -H X-Auth:\ ... h`,
		`http h X-Auth:top`:                                         `http h X-Auth:...`,
		"printf 'a: b\npassword: top\nc: d\n'":                      "printf 'a: b\npassword: ...\nc: d\n'",
		"curl -d 'grant=x&client_secret=top&scope=y' https://h/tok": "curl -d 'grant=x&client_secret=...&scope=y' https://h/tok",
	} {
		require.Equal(t, want, Line(line), line)
		require.Equal(t, want, Line(want), "what is hidden stays as it is")
	}
}

// What only looks like a secret is not hidden.
func TestOrdinaryCommandsStay(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"make -j 8 all", "rsync -a /src/ host:/dst", "rsync -a ada@host:/src .", "cp -p a b", "ssh -p 2222 ada@host", "docker run -p 80:80 image:tag",
		"docker pull h:5000/image:tag@sha256:abcdef", "docker run -u 1000:1000 i", "chown --user ada:users", "psql postgres://ada@db:5432/x",
		"x --token-count 5", "x --max-tokens 4096", "x --password-file /etc/x", "PASSWORD_FILE=/etc/x make", "TOKEN_URL=https://h/x make", "x --no-password db",
		"docker login --password-stdin h", "ffmpeg -pass 2 -af lowpass=f=3000 x", "x --ask-password --host h", "cd $PWD && OLDPWD=/x make", "gpg --batch --passphrase-fd 0",
		"curl http://h:8080/a@b", "curl http://[::1]:80/x", "git clone ssh://git@h/r", "npm i @a/b@1.2", "npm publish http://h:4873/@scope/x", "kubectl get secret x",
		"sort --key=2", "docker run -p 80:80 i", "smbclient -U ada //h/s", "date -u +100%25", "curl -H 'X-Author: ada' h",
		"docker login -u ada h", "keytool -storetype pkcs12 -keystore x", "printf 50%50", "curl -H 'X-Auth-User: ada' h", "net use x", "tar --exclude=secrets.txt -cf x", "docker run -v secret:/run/secret i", "ansible --private-key=/root/.ssh/x", "PRIVATE_KEY=~/x y",
		"date +%H:%M", "a 'b c' \"d $E\" f\\ g", "awk '{print $1}' x | sort -u", "x --enable-token=true --secret=no", "", " ", "'", `\`, `"`, "$'", "=", ":", "://", "--", "-",
	} {
		require.Equal(t, line, Line(line))
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	for _, c := range [][2][]string{
		{{"x", "--password", "t'o p", "y"}, {"x", "--password", "...", "y"}},
		{{"x", "--password=t'o p"}, {"x", "--password=..."}},
		{{"x", "PASSWORD=t\"o;p &"}, {"x", "PASSWORD=..."}},
		{{"sh", "-c", "PASSWORD=top make \"$@\""}, {"sh", "-c", "PASSWORD=... make \"$@\""}},
		{{"curl", "-H", "X-Api-Key: t o p"}, {"curl", "-H", "X-Api-Key: ..."}},
		{{"x", "--password", ""}, {"x", "--password", ""}},
		{{"echo", "don't --password=top x"}, {"echo", "don't --password=... x"}},
	} {
		given := slices.Clone(c[0])
		require.Equal(t, c[1], Args(c[0]))
		require.Equal(t, given, c[0], "what is run stays as it is")
	}
}

// FuzzLine: no input causes a panic, and each mark replaces something.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{`sh -c "PASSWORD='a'\''b' x"`, "a://b:c@d -u x:y curl -uab", "$'\\'' --token", "\"\\\"password\\\":\\\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, shown := range []string{Line(line), Args([]string{line})[0]} {
			require.LessOrEqual(t, len(shown)-len(line), (len(mark)-2)*strings.Count(shown, mark), "no secret is shorter than two bytes")
		}
	})
}

// FuzzSecret: a secret after a telling name is hidden, whatever its content.
func FuzzSecret(f *testing.F) {
	for _, seed := range []string{"s3cr3t", "a'b c", `"x"\`, "a@b/c:d", "--x", "$(x);y", "päss"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		if isHarmless(secret) || isOption(secret) || strings.ContainsRune(secret, 0) {
			return
		}
		secret = "<" + secret + ">" // to find it by
		for _, args := range [][]string{
			{"x", "--password", secret}, {"x", "--password=" + secret}, {"PASSWORD=" + secret}, {"x", "-e", "TOKEN=" + secret},
			{"curl", "-u", "ada:" + secret}, {"curl", "-H", "Authorization: Bearer " + secret}, {"mysql", "-p" + secret},
			{"sh", "-c", "PASSWORD=" + quote(secret) + " make"}, {"sh", "-c", "x --token " + quote(secret)},
			{"bash", "-c", "ssh h " + quote("x --password "+quote(secret))},
		} {
			require.NotContains(t, strings.Join(Args(args), "\n"), secret)
			quoted := make([]string, len(args))
			for i, arg := range args {
				quoted[i] = quote(arg)
			}
			require.NotContains(t, Line(strings.Join(quoted, " ")), quote(secret))
		}
	})
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
