package fakecloudshell_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// cachedServer has shown an empty reservation, and then got a service.
func cachedServer(t *testing.T, policy fakecloudshell.Policy, first string) (*clock, *peer) {
	t.Helper()
	opt, now := basic(), newClock()
	opt.Now, opt.Policy = now.Now, policy
	p := admin(t, start(t, opt))
	require.Empty(t, p.services(t, first))
	p.must(t, addMutex, mutex(owned("new")))
	return now, p
}

func TestDetailsAreCachedForFiveSeconds(t *testing.T) {
	now, p := cachedServer(t, fakecloudshell.Policy{}, "")
	for _, cached := range []string{"", "<disableCache />", "<disableCache>false</disableCache>", "<disableCache>0</disableCache>"} {
		require.Empty(t, p.services(t, cached))
	}
	for _, fresh := range []string{"<disableCache>true</disableCache>", "<disableCache>1</disableCache>"} {
		require.Len(t, p.services(t, fresh), 1)
	}
	now.pass(5*time.Second - 1)
	require.Empty(t, p.services(t, ""), "neither a change nor a fresh read has emptied the cache")
	now.pass(1)
	require.Len(t, p.services(t, ""), 1)
}

func TestWhatIsReadFreshIsNotCached(t *testing.T) {
	_, p := cachedServer(t, fakecloudshell.Policy{}, fresh)
	require.Len(t, p.services(t, ""), 1)
	_, p = cachedServer(t, fakecloudshell.Policy{FreshenCache: true}, fresh)
	require.Empty(t, p.services(t, ""))
}

func TestServersWithAnotherCache(t *testing.T) {
	_, p := cachedServer(t, fakecloudshell.Policy{CacheFor: -1}, "")
	require.Len(t, p.services(t, ""), 1)
	_, p = cachedServer(t, fakecloudshell.Policy{IgnoreDisableCache: true}, fresh)
	require.Empty(t, p.services(t, fresh))
	now, p := cachedServer(t, fakecloudshell.Policy{CacheFor: time.Minute}, "")
	now.pass(time.Minute - 1)
	require.Empty(t, p.services(t, ""))
}

// The cache of a reservation that has ended says that it goes on.
func TestTheEndOfAReservationIsCachedToo(t *testing.T) {
	opt := basic()
	opt.Now = newClock().Now
	server := start(t, opt)
	p := admin(t, server)
	p.services(t, "")
	require.NoError(t, server.EndReservation(lab))
	require.Equal(t, "Started", p.must(t, "GetReservationDetails", details).Info.Description.Status)
	require.Equal(t, "Completed", p.must(t, "GetReservationDetails", details+fresh).Info.Description.Status)
}

func TestDatesAreInTheCallersFormat(t *testing.T) {
	opt := basic()
	opt.Now = newClock().Now
	p := admin(t, start(t, opt))
	for pattern, want := range map[string]string{
		"MM/dd/yyyy HH:mm":    "05/17/2024 09:30",
		"dd.MM.yyyy HH:mm:ss": "17.05.2024 09:30:00",
	} {
		p.header = http.Header{"DateTimeFormat": {pattern}}
		require.Equal(t, want, p.must(t, "GetReservationDetails", details).Info.Description.ModificationDate)
	}
	require.Equal(t, "2024-05-17T09:30:00.1234567Z", p.must(t, "GetServerDateAndTime", "").Info.Time)
}

func TestGetReservationStatus(t *testing.T) {
	opt := basic()
	opt.Now = newClock().Now
	r := admin(t, start(t, opt)).must(t, "GetReservationStatus", details)
	require.Contains(t, r.Body, `<ReservationSlimStatus ReservationId="`+lab+`" StartTime="05/17/2024 09:30" EndTime="05/18/2024 09:30" `+
		`Status="Started" ProvisioningStatus="Ready" Booked="true" SetupStage="Ended">`)
}

func TestGetServices(t *testing.T) {
	server := start(t, basic())
	p, ann := admin(t, server), logOn(t, server, "ann", "a&<b>")
	list := func(p *peer, category, name string) []service {
		return p.must(t, "GetServices", param("categoryName", category)+param("serviceName", name)).Info.Services
	}
	all := list(p, "", "")
	require.Len(t, all, 2)
	require.Equal(t, fakecloudshell.MutexModel, all[0].Name)
	require.Equal(t, fakecloudshell.OwnerAttribute, all[0].Attributes[0].Name)
	require.Len(t, list(p, fakecloudshell.MutexFamily, fakecloudshell.MutexModel), 1)
	require.Empty(t, list(p, "Things", fakecloudshell.MutexModel))
	require.Len(t, list(ann, "", ""), 1, "the mutex is for administrators")
}

func TestSettingAServicesValues(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	p.must(t, addMutex, mutex(owned("first")))
	alias := details + param("serviceAlias", "MUTEX")
	values := func(name string) string {
		return "<attributeRequests><AttributeNameValue>" + param("Name", name) + param("Value", "second") + "</AttributeNameValue></attributeRequests>"
	}
	p.must(t, "SetServiceAttributesValues", alias+values(fakecloudshell.OwnerAttribute))
	require.Equal(t, 100, p.refused(t, "SetServiceAttributesValues", alias+values("None")).Code)
	p.must(t, "SetServiceLiveStatus", alias+param("liveStatusName", "Online")+param("additionalInfo", "beat 7"))
	shown := p.services(t, fresh)[0]
	require.Equal(t, "second", shown.owner())
	require.Equal(t, []string{"Online", "beat 7"}, []string{shown.ResourceLiveStatusName, shown.ResourceLiveStatusDescription})
	require.Equal(t, "beat 7", server.Services(lab)[0].LiveStatusInfo)
	none := details + param("serviceAlias", "none")
	require.Equal(t, 100, p.refused(t, "SetServiceAttributesValues", none+values(fakecloudshell.OwnerAttribute)).Code)
	require.Equal(t, 100, p.refused(t, "SetServiceLiveStatus", none+param("liveStatusName", "")+param("additionalInfo", "")).Code)
}

func TestSetServiceName(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	p.must(t, addMutex, mutex(owned("first")))
	p.must(t, addMutex, adding("Plain", "other", noOwner))
	to := func(from, to string) string {
		return details + param("serviceName", from) + param("newServiceName", to)
	}
	require.Equal(t, taken, p.refused(t, "SetServiceName", to("MUTEX", "other")).Message)
	require.Equal(t, 100, p.refused(t, "SetServiceName", to("none", "x")).Code)
	require.Equal(t, 100, p.refused(t, "SetServiceName", to("MUTEX", "")).Code)
	p.must(t, "SetServiceName", to("MUTEX", "MUTEX"))
	p.must(t, "SetServiceName", to("MUTEX", "STALE"))
	require.Equal(t, []string{"STALE", "other"}, aliases(server.Services(lab)))
	require.Equal(t, "first", server.Services(lab)[0].Attributes[fakecloudshell.OwnerAttribute])
	p.must(t, addMutex, mutex(noOwner))
}

func TestSandboxData(t *testing.T) {
	server := start(t, basic())
	p, ann := admin(t, server), logOn(t, server, "ann", "a&<b>")
	set := func(pairs ...string) string {
		list := ""
		for i := 0; i < len(pairs); i += 2 {
			list += "<SandboxDataKeyValue>" + param("Key", pairs[i]) + param("Value", pairs[i+1]) + "</SandboxDataKeyValue>"
		}
		return details + "<sandboxDataKeyValues>" + list + "</sandboxDataKeyValues>"
	}
	p.must(t, "SetSandboxData", set("a", "1", "b", "2"))
	p.must(t, "SetSandboxData", set("b", "3"))
	require.Equal(t, 100, ann.refused(t, "SetSandboxData", set("b", "4")).Code, "for administrators only")
	data := ann.must(t, "GetSandboxData", details).Info.Data
	require.Len(t, data, 2)
	require.Equal(t, []string{"1", "3"}, []string{data[0].Value, data[1].Value})
}

func TestMethodsThatAServerDoesNotHave(t *testing.T) {
	opt := basic()
	opt.Policy.Without = []fakecloudshell.Method{fakecloudshell.SetServiceName}
	p := admin(t, start(t, opt))
	require.Equal(t, 101, p.refused(t, "SetServiceName", details).Code)
	require.Equal(t, 101, p.refused(t, "Nonsense", "").Code)
	p.services(t, fresh)
}
