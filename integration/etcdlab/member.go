package etcdlab

import (
	"errors"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/multilock/go/internal/testkit/actor"
)

// Role is the role of a member's process, for actor.Play. PlayMember plays it.
const Role = "etcd"

// part is a member's configuration.
type part struct {
	Name, Dir, Client, Peer, Cluster string
	// Certs is the directory of the TLS certificates, "" for no TLS.
	Certs string
	Quota int64 // limit of the store in bytes, 0 for the default
}

// order cuts a member off from other members, by their IDs, or reconnects it.
type order struct{ Cut, Mend []uint64 }

// answer is a member's etcd ID and its clock.
type answer struct {
	ID   uint64
	Time time.Time
}

// PlayMember runs a member of a cluster until its standard input ends.
func PlayMember() error {
	var p part
	if err := actor.Part(&p); err != nil {
		return err
	}
	member, err := p.start()
	if err != nil {
		return err
	}
	defer member.Close()
	return actor.Obey(os.Stdin, os.Stdout, func(o order) answer {
		for _, id := range o.Cut {
			member.Server.CutPeer(types.ID(id))
		}
		for _, id := range o.Mend {
			member.Server.MendPeer(types.ID(id))
		}
		return answer{uint64(member.Server.MemberID()), time.Now()}
	})
}

func (p part) start() (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Name, config.Dir, config.InitialCluster = p.Name, p.Dir, p.Cluster
	config.LogLevel, config.LogOutputs = "fatal", []string{os.DevNull}
	config.UnsafeNoFsync = true // only processes are killed, never the machine
	config.QuotaBackendBytes = p.Quota
	config.ListenClientUrls, config.AdvertiseClientUrls = urls(p.Client), urls(p.Client)
	if p.Certs != "" {
		config.ListenClientUrls[0].Scheme, config.AdvertiseClientUrls[0].Scheme = "https", "https"
		config.ClientTLSInfo = transport.TLSInfo{
			CertFile: p.Certs + "/server.pem", KeyFile: p.Certs + "/server.key", TrustedCAFile: p.Certs + "/ca.pem", ClientCertAuth: true,
		}
	}
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls(p.Peer), urls(p.Peer)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-member.Server.ReadyNotify():
		return member, nil
	case err = <-member.Err():
	case <-time.After(time.Minute):
		err = errors.New("a member of etcd does not get ready")
	}
	member.Close()
	return nil, err
}

func urls(address string) []url.URL { return []url.URL{{Scheme: "http", Host: address}} }
