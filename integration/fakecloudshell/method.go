package fakecloudshell

import (
	"maps"
	"slices"
)

// Method is the name of a call, as the URL and the root element have it.
type Method string

// The calls that the server knows. [Policy.Without] takes some away.
const (
	Logon                Method = "Logon"
	SecureLogon          Method = "SecureLogon"
	Logoff               Method = "Logoff"
	AddService           Method = "AddServiceToReservation"
	RemoveServices       Method = "RemoveServicesFromReservation"
	GetDetails           Method = "GetReservationDetails"
	GetStatus            Method = "GetReservationStatus"
	GetServices          Method = "GetServices"
	GetTime              Method = "GetServerDateAndTime"
	SetServiceAttributes Method = "SetServiceAttributesValues"
	SetServiceLiveStatus Method = "SetServiceLiveStatus"
	SetServiceName       Method = "SetServiceName"
	SetSandboxData       Method = "SetSandboxData"
	GetSandboxData       Method = "GetSandboxData"
)

// Methods are all of them, sorted.
func Methods() []Method { return slices.Sorted(maps.Keys(methods())) }

// signature is what a method takes and does.
type signature struct {
	parameters []parameter
	anonymous  bool // it makes a session, and needs none
	execute    func(*world, caller, arguments) (any, error)
}

// parameter is one child of the root element. Required ones may be empty, but
// not missing.
type parameter struct {
	name     string
	optional bool
}

func required(names ...string) []parameter {
	list := make([]parameter, len(names))
	for i, name := range names {
		list[i].name = name
	}
	return list
}

func optional(names ...string) []parameter {
	list := required(names...)
	for i := range list {
		list[i].optional = true
	}
	return list
}

// methods are all signatures; parameters are in the order of the API's documents.
func methods() map[Method]signature {
	onService := func(more ...string) []parameter {
		return required(append([]string{"reservationId", "serviceAlias"}, more...)...)
	}
	return map[Method]signature{
		Logon:          {append(required("username", "password"), optional("domainName")...), true, (*world).logon},
		SecureLogon:    {append(required("token"), optional("domainName")...), true, (*world).secureLogon},
		Logoff:         {optional("token"), false, (*world).logoff},
		AddService:     {required("reservationId", "serviceName", "alias", "attributes"), false, (*world).addService},
		RemoveServices: {required("reservationId", "services"), false, (*world).removeServices},
		GetDetails:     {append(required("reservationId"), optional("disableCache")...), false, (*world).details},
		GetStatus:      {required("reservationId"), false, (*world).status},
		GetServices:    {required("categoryName", "serviceName"), false, (*world).services},
		GetTime:        {nil, false, (*world).serverTime},

		SetServiceAttributes: {onService("attributeRequests"), false, (*world).setAttributes},
		SetServiceLiveStatus: {onService("liveStatusName", "additionalInfo"), false, (*world).setLiveStatus},
		SetServiceName:       {required("reservationId", "serviceName", "newServiceName"), false, (*world).rename},
		SetSandboxData:       {required("reservationId", "sandboxDataKeyValues"), false, (*world).setData},
		GetSandboxData:       {required("reservationId"), false, (*world).data},
	}
}
