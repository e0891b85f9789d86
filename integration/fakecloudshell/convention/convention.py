"""A client that takes the reservation mutex as its convention says, mistakes included.

It talks to the server as the Python clients of CloudShell do: --client 9.3 closes
each connection and sends nothing twice; --client 2024.1 keeps the connection, sends
a request that got no answer up to three times, and logs on again after HTTP 401.

The convention: held is who added the service MUTEX; who cannot, for whatever
reason, sleeps and tries again, 100 times; then he goes on without it. In the end
the service is removed, whosesoever it is. With --owner the service bears a name,
and who finds another one there after adding it tries again (the first version).

Commands come in as lines, one answer goes out for each:

    acquire         the whole loop: "acquired", or "went on without" if it gave up
    try             one attempt: "acquired", or "denied: REASON"
    release         "released", or "denied: REASON"
    count FILE N    N times: acquire, add one to the number in FILE, release
    owner           what the server says at once about the service:
                    "nobody", "held by OWNER", or "held by somebody"

It needs nothing but Python 3.
"""
import argparse
import http.client
import random
import socket
import sys
import time
import urllib.request
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

NAMESPACE = ' xmlns="http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd"'
SERVICE = "Mutex Service"
ATTRIBUTE = "Mutex Owner"


class ApiError(Exception):
    """The server answered that the call failed."""


def element(name, value):
    """One parameter: text, bool, list of texts, or list of (structure, members)."""
    if value is None or value == "" or value == []:
        return "<%s />" % name
    if isinstance(value, bool):
        content = "true" if value else "false"
    elif isinstance(value, list):
        content = "".join(map(item, value))
    else:
        content = escape(value)
    return "<%s>%s</%s>" % (name, content, name)


def item(value):
    if isinstance(value, str):
        return element("string", value)
    structure, members = value
    inner = "".join(element(key, members[key]) for key in sorted(members))
    return "<%s>%s</%s>" % (structure, inner, structure)


def request_body(method, parameters):
    inner = "".join(element(name, value) for name, value in parameters)
    text = "<%s>%s</%s>" % (method, inner, method) if inner else "<%s />" % method
    return text.encode("ascii", "xmlcharrefreplace")


def parse(answer):
    """The ResponseInfo of a success; None if there is none."""
    root = ElementTree.fromstring(answer.replace(NAMESPACE.encode(), b""))
    if root.attrib["Success"].lower() not in ("true", "yes", "on"):
        raise ApiError("CloudShell API error %s: %s" % (root.findtext("ErrorCode"), root.find("Error").text))
    return root.find("ResponseInfo")


class Wire:
    """What both clients have in common."""

    def __init__(self, options):
        self.options = options
        self.url = urlsplit(options.url)
        self.token = ""

    def headers(self):
        machine = "%s:%s" % (socket.gethostname(), self.url.port)
        return {
            "Content-Type": "text/xml",
            "Accept": "*/*",
            "ClientTimeZoneId": "UTC",
            "DateTimeFormat": "MM/dd/yyyy HH:mm",
            "Authorization": "MachineName=%s;Token=%s" % (machine, self.token),
        }

    def log_on(self):
        o = self.options
        self.token = ""
        info = self.once("Logon", [("username", o.user), ("password", o.password), ("domainName", "Global")])
        self.token = info.find("Token").attrib["Token"]

    def once(self, method, parameters):
        return parse(self.post("/ResourceManagerApiService/" + method, request_body(method, parameters)))


class Wire93(Wire):
    """urllib: one connection per call, its own spelling of header names."""

    def post(self, path, body):
        request = urllib.request.Request(self.options.url + path, body, self.headers())
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    call = Wire.once


class Wire2024(Wire):
    """One connection, three attempts, a second logon."""

    connection = None

    def post(self, path, body):
        for attempt in (1, 2, 3):
            try:
                return self.send(path, body)
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt == 3:
                    raise
                time.sleep(attempt * self.options.resend)

    def send(self, path, body):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.url.hostname, self.url.port)
        self.connection.request("POST", path, body, self.headers())
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status == 401:
            raise PermissionRefused("HTTP 401")
        if not 200 <= answer.status < 300 or not content:
            raise RuntimeError("HTTP %d" % answer.status)
        return content

    def call(self, method, parameters):
        try:
            return self.once(method, parameters)
        except PermissionRefused:
            self.log_on()
            return self.once(method, parameters)


class PermissionRefused(Exception):
    """The token does not count any more."""


class Mutex:
    def __init__(self, wire, options):
        self.wire, self.options = wire, options

    def attempt(self):
        o = self.options
        owner = [("AttributeNameValue", {"Name": ATTRIBUTE, "Value": o.owner})] if o.owner else []
        self.wire.call("AddServiceToReservation", [
            ("reservationId", o.reservation), ("serviceName", SERVICE), ("alias", o.alias), ("attributes", owner)])
        if o.owner and self.look(False)[1] not in (None, o.owner):
            raise RuntimeError("somebody else added it at the same time")

    def look(self, fresh):
        """Whether the service is there, and its owner, None if it has no such attribute."""
        info = self.wire.call("GetReservationDetails", [("reservationId", self.options.reservation), ("disableCache", fresh)])
        for service in info.findall("ReservationDescription/Services/Service"):
            if service.attrib["Alias"] == self.options.alias:
                for attribute in service.findall("Attributes/Attribute"):
                    if attribute.attrib["Name"] == ATTRIBUTE:
                        return True, attribute.attrib["Value"]
                return True, None
        return False, None

    def acquire(self):
        for _ in range(self.options.attempts):
            try:
                self.attempt()
                return True
            except Exception as error:  # one of the convention's mistakes
                print("not acquired: %s" % error, file=sys.stderr, flush=True)
                time.sleep(random.uniform(*self.options.pause))
        return False

    def release(self):
        self.wire.call("RemoveServicesFromReservation", [
            ("reservationId", self.options.reservation), ("services", [self.options.alias])])


def count(mutex, path, rounds):
    for _ in range(rounds):
        mutex.acquire()
        with open(path) as f:
            number = int(f.read())
        with open(path, "w") as f:
            f.write(str(number + 1))
        mutex.release()


def obey(mutex, command, rest):
    try:
        if command == "acquire":
            return "acquired" if mutex.acquire() else "went on without"
        if command == "count":
            count(mutex, rest[0], int(rest[1]))
            return "counted"
        if command == "try":
            mutex.attempt()
            return "acquired"
        if command == "release":
            mutex.release()
            return "released"
        if command == "owner":
            held, owner = mutex.look(True)
            return "held by %s" % (owner or "somebody") if held else "nobody"
    except Exception as error:
        return "denied: %s" % error
    return "unknown command"


def options():
    parser = argparse.ArgumentParser(description="the reservation mutex by its convention")
    parser.add_argument("--url", required=True)
    parser.add_argument("--reservation", required=True)
    parser.add_argument("--client", choices=["9.3", "2024.1"], default="2024.1")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument("--alias", default="MUTEX")
    parser.add_argument("--owner", default="", help="write and check the owner attribute")
    parser.add_argument("--attempts", type=int, default=100)
    parser.add_argument("--pause", type=float, nargs=2, default=(2, 5), help="seconds between attempts, least and most")
    parser.add_argument("--resend", type=float, default=1, help="seconds before 2024.1 sends again, twice that later")
    return parser.parse_args()


def main():
    chosen = options()
    wire = {"9.3": Wire93, "2024.1": Wire2024}[chosen.client](chosen)
    wire.log_on()
    mutex = Mutex(wire, chosen)
    for line in sys.stdin:
        command, *rest = line.split()
        print(obey(mutex, command, rest), flush=True)


main()
