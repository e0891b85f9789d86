package fakecloudshell

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"
)

// What follows is the content of ResponseInfo. Members of lists are elements with
// attributes: the older Python client overlooks others.

type domainInfo struct {
	Name        string `xml:"Name,attr"`
	Description string `xml:"Description,attr"`
	DomainID    string `xml:"DomainId,attr"`
}

type userInfo struct {
	Name          string `xml:"Name,attr"`
	IsAdmin       bool   `xml:"IsAdmin,attr"`
	IsActive      bool   `xml:"IsActive,attr"`
	IsDomainAdmin bool   `xml:"IsDomainAdmin,attr"`
}

type tokenInfo struct {
	Token string `xml:"Token,attr"`
}

type logonInfo struct {
	Type   string     `xml:"xsi:type,attr"`
	Domain domainInfo `xml:"Domain"`
	User   userInfo   `xml:"User"`
	Token  tokenInfo  `xml:"Token"`
}

func newLogonInfo(s session, token string) *logonInfo {
	return &logonInfo{
		Type:   "LogonResponseInfo",
		Domain: domainInfo{Name: s.domain, DomainID: domainID(s.domain)},
		User:   userInfo{Name: s.user.Name, IsAdmin: s.user.Admin, IsActive: true, IsDomainAdmin: s.user.Admin},
		Token:  tokenInfo{token},
	}
}

// domainID is a GUID that is always the same for a domain.
func domainID(domain string) string {
	sum := sha256.Sum256([]byte(domain))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

type attributeInfo struct {
	Name  string `xml:"Name,attr"`
	Value string `xml:"Value,attr"`
}

type serviceInfo struct {
	ServiceName  string          `xml:"ServiceName,attr"`
	Alias        string          `xml:"Alias,attr"`
	Address      string          `xml:"Address,attr"`
	LiveStatus   string          `xml:"ResourceLiveStatusName,attr"`
	LiveInfo     string          `xml:"ResourceLiveStatusDescription,attr"`
	AttributeSet []attributeInfo `xml:"Attributes>Attribute"`
}

func newServiceInfo(s Service) serviceInfo {
	info := serviceInfo{ServiceName: s.Model, Alias: s.Alias, LiveStatus: s.LiveStatus, LiveInfo: s.LiveStatusInfo}
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		info.AttributeSet = append(info.AttributeSet, attributeInfo{name, s.Attributes[name]})
	}
	return info
}

type empty struct{}

// description is a ReservationDescription; the elements are in the order of a
// recorded one.
type description struct {
	ID                 string         `xml:"Id,attr"`
	Name               string         `xml:"Name,attr"`
	Description        string         `xml:"Description,attr"`
	StartTime          string         `xml:"StartTime,attr"`
	EndTime            string         `xml:"EndTime,attr"`
	RecurrenceType     string         `xml:"RecurrenceType,attr"`
	Owner              string         `xml:"Owner,attr"`
	Booked             bool           `xml:"Booked,attr"`
	Status             string         `xml:"Status,attr"`
	ProvisioningStatus string         `xml:"ProvisioningStatus,attr"`
	ActualEndTime      string         `xml:"ActualEndTime,attr"`
	CreateDate         string         `xml:"CreateDate,attr"`
	ModificationDate   string         `xml:"ModificationDate,attr"`
	DomainName         string         `xml:"DomainName,attr"`
	Topologies         empty          `xml:"Topologies"`
	TopologiesInfo     empty          `xml:"TopologiesInfo"`
	PermittedUsers     permittedUsers `xml:"PermittedUsers"`
	Resources          empty          `xml:"Resources"`
	Conflicts          empty          `xml:"Conflicts"`
	Connectors         empty          `xml:"Connectors"`
	Apps               empty          `xml:"Apps"`
	SetupStage         string         `xml:"SetupStage"`
	Services           serviceList    `xml:"Services"`
}

// The two lists are there when they are empty, too.
type (
	permittedUsers struct{ PermittedUser []string }
	serviceList    struct{ Service []serviceInfo }
)

type detailsInfo struct {
	Type        string      `xml:"xsi:type,attr"`
	Description description `xml:"ReservationDescription"`
}

const (
	reservationLength = 24 * time.Hour // so it seems; it never ends by itself
	setupStage        = "Ended"
)

func newDetailsInfo(s *snapshot, dates string) *detailsInfo {
	d := description{
		ID: s.ID, Name: s.Name, DomainName: s.Domain, Owner: s.Owner, Booked: true, RecurrenceType: "None",
		CreateDate: s.created.Format(dates), ModificationDate: s.changed.Format(dates),
		PermittedUsers: permittedUsers{s.Permitted}, SetupStage: setupStage,
	}
	d.StartTime, d.EndTime = s.times(dates)
	d.Status, d.ProvisioningStatus = s.statuses()
	if s.ended {
		d.ActualEndTime = s.changed.Format(dates)
	}
	for _, service := range s.Services {
		d.Services.Service = append(d.Services.Service, newServiceInfo(service))
	}
	return &detailsInfo{"GetReservationDescriptionResponseInfo", d}
}

func (r *reservation) times(dates string) (start, end string) {
	return r.created.Format(dates), r.created.Add(reservationLength).Format(dates)
}

func (r *reservation) statuses() (status, provisioning string) {
	if r.ended {
		return "Completed", "Teardown"
	}
	return "Started", "Ready"
}

type slimStatus struct {
	ID                 string `xml:"ReservationId,attr"`
	StartTime          string `xml:"StartTime,attr"`
	EndTime            string `xml:"EndTime,attr"`
	Status             string `xml:"Status,attr"`
	ProvisioningStatus string `xml:"ProvisioningStatus,attr"`
	Booked             bool   `xml:"Booked,attr"`
	SetupStage         string `xml:"SetupStage,attr"`
}

type statusInfo struct {
	Type string     `xml:"xsi:type,attr"`
	Slim slimStatus `xml:"ReservationSlimStatus"`
}

func newStatusInfo(r *reservation, dates string) *statusInfo {
	slim := slimStatus{ID: r.ID, Booked: true, SetupStage: setupStage}
	slim.StartTime, slim.EndTime = r.times(dates)
	slim.Status, slim.ProvisioningStatus = r.statuses()
	return &statusInfo{"ReservationSlimStatusInfo", slim}
}

type modelAttribute struct {
	Name           string `xml:"Name,attr"`
	Type           string `xml:"Type,attr"`
	IsRequired     bool   `xml:"IsRequired,attr"`
	DefaultValue   string `xml:"DefaultValue,attr"`
	PossibleValues string `xml:"PossibleValues,attr"`
}

type modelInfo struct {
	Name             string           `xml:"Name,attr"`
	CategoryFullPath string           `xml:"CategoryFullPath,attr"`
	Description      string           `xml:"Description,attr"`
	Attributes       []modelAttribute `xml:"Attributes>Attribute"`
}

type servicesInfo struct {
	Type     string      `xml:"xsi:type,attr"`
	Services []modelInfo `xml:"Services>Service"`
}

func newServicesInfo(models []Model) *servicesInfo {
	info := &servicesInfo{Type: "ServicesListInfo"}
	for _, m := range models {
		shown := modelInfo{Name: m.Name, CategoryFullPath: m.Family}
		for _, a := range m.Attributes {
			shown.Attributes = append(shown.Attributes, modelAttribute{Name: a.Name, Type: "String", DefaultValue: a.Default})
		}
		info.Services = append(info.Services, shown)
	}
	return info
}

type timeInfo struct {
	Type   string `xml:"xsi:type,attr"`
	Time   string `xml:"ServerDateTime,attr"`
	String string `xml:"ServerDateTimeString,attr"`
}

// newTimeInfo has seven digits of a second, whatever the caller's format of dates is.
func newTimeInfo(now time.Time, dates string) *timeInfo {
	return &timeInfo{"ServerTimeInfo", now.UTC().Format("2006-01-02T15:04:05.0000000Z"), now.UTC().Format(dates)}
}

type dataValue struct {
	Key   string `xml:"Key,attr"`
	Value string `xml:"Value,attr"`
}

type dataInfo struct {
	Type   string      `xml:"xsi:type,attr"`
	Values []dataValue `xml:"SandboxDataKeyValues>SandboxDataKeyValue"`
}

func newDataInfo(data map[string]string) *dataInfo {
	info := &dataInfo{Type: "GetSandboxDataInfo"}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		info.Values = append(info.Values, dataValue{key, data[key]})
	}
	return info
}
