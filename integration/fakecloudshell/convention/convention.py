"""A client that uses the reservation mutex according to its convention, including the convention's bugs.

It behaves like the Python clients of CloudShell: --client 9.3 opens a connection
for each request, and never retries; --client 2024.1 keeps the connection, sends a
request up to three times if there is no response, and logs on again after HTTP 401.

The convention: a client holds the mutex after it has added the service MUTEX. If
this fails, for any reason, it sleeps and tries again, 100 times, and then continues
without the mutex. At the end it removes the service, even if another client has
added it. With --owner (the first version) the service has an owner attribute, and a
client that finds another owner after adding the service tries again.

It reads commands from standard input, and answers each with one line:

    acquire         the whole loop: "acquired", or "went on without" if it failed
    try             one attempt: "acquired", or "denied: REASON"
    release         "released", or "denied: REASON"
    count FILE N    N times: acquire, increment the number in FILE, release; "counted"
    owner           the uncached state: "free", "held by OWNER", or "held"

It needs only Python 3.
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
    """The server reported that the call failed."""


def element(name, value):
    """Encode a parameter: a string, a bool, a list of strings, or a list of (structure, members)."""
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


def parse(response):
    """Return the ResponseInfo of a successful response, or None if it has none."""
    root = ElementTree.fromstring(response.replace(NAMESPACE.encode(), b""))
    if root.attrib["Success"].lower() not in ("true", "yes", "on"):
        raise ApiError("CloudShell API error %s: %s" % (root.findtext("ErrorCode"), root.find("Error").text))
    return root.find("ResponseInfo")


class Client:
    """The common part of both clients."""

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


class Client93(Client):
    """Uses urllib: one connection per call, and urllib's capitalization of header names."""

    def post(self, path, body):
        request = urllib.request.Request(self.options.url + path, body, self.headers())
        with urllib.request.urlopen(request) as response:
            return response.read()

    call = Client.once


class Client2024(Client):
    """Uses one connection, three attempts, and a second logon."""

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
        response = self.connection.getresponse()
        content = response.read()
        if response.status == 401:
            raise Unauthorized("HTTP 401")
        if not 200 <= response.status < 300 or not content:
            raise RuntimeError("HTTP %d" % response.status)
        return content

    def call(self, method, parameters):
        try:
            return self.once(method, parameters)
        except Unauthorized:
            self.log_on()
            return self.once(method, parameters)


class Unauthorized(Exception):
    """The token is not valid any more."""


class Mutex:
    def __init__(self, client, options):
        self.client, self.options = client, options

    def attempt(self):
        o = self.options
        owner = [("AttributeNameValue", {"Name": ATTRIBUTE, "Value": o.owner})] if o.owner else []
        self.client.call("AddServiceToReservation", [
            ("reservationId", o.reservation), ("serviceName", SERVICE), ("alias", o.alias), ("attributes", owner)])
        if o.owner and self.inspect(False)[1] not in (None, o.owner):
            raise RuntimeError("another client added the service at the same time")

    def inspect(self, fresh):
        """Return whether the service exists, and its owner, or None if it has no owner attribute."""
        info = self.client.call("GetReservationDetails", [("reservationId", self.options.reservation), ("disableCache", fresh)])
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
            except Exception as error:  # a bug of the convention
                print("not acquired: %s" % error, file=sys.stderr, flush=True)
                time.sleep(random.uniform(*self.options.pause))
        return False

    def release(self):
        self.client.call("RemoveServicesFromReservation", [
            ("reservationId", self.options.reservation), ("services", [self.options.alias])])


def count(mutex, path, rounds):
    for _ in range(rounds):
        mutex.acquire()
        with open(path) as f:
            number = int(f.read())
        with open(path, "w") as f:
            f.write(str(number + 1))
        mutex.release()


def execute(mutex, command, rest):
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
            held, owner = mutex.inspect(True)
            if not held:
                return "free"
            return "held by %s" % owner if owner else "held"
    except Exception as error:
        return "denied: %s" % error
    return "unknown command"


def options():
    parser = argparse.ArgumentParser(description="A client that uses the reservation mutex according to its convention.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--reservation", required=True)
    parser.add_argument("--client", choices=["9.3", "2024.1"], default="2024.1")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument("--alias", default="MUTEX")
    parser.add_argument("--owner", default="", help="write and check the owner attribute")
    parser.add_argument("--attempts", type=int, default=100)
    parser.add_argument("--pause", type=float, nargs=2, default=(2, 5), help="minimum and maximum seconds between attempts")
    parser.add_argument("--resend", type=float, default=1, help="seconds before the first retry of 2024.1, and twice that before the second")
    return parser.parse_args()


def main():
    chosen = options()
    client = {"9.3": Client93, "2024.1": Client2024}[chosen.client](chosen)
    client.log_on()
    mutex = Mutex(client, chosen)
    for line in sys.stdin:
        command, *rest = line.split()
        print(execute(mutex, command, rest), flush=True)


main()
