import NIOHTTP1

/// Decides which requests come from the user of this computer who has seen the address.
///
/// The token keeps out other users and programs. The page's script keeps it, and sends it with each request for data. Browsers send a cookie
/// to every port of a computer, and so to programs of other users. So the cookie is another secret, which opens only the files of the page.
/// The Host header keeps out pages of other sites whose names were changed to lead to this
/// computer. The Origin header keeps other sites from sending changes.
struct AccessCheck: Sendable {
    let token: String
    let port: Int
    private let cookieSecret = AccessCheck.makeToken()

    init(token: String, port: Int) {
        self.token = token
        self.port = port
    }

    /// The name has the port, so that several programs can be open at once.
    private var cookie: String { "strata-studio-\(port)" }

    /// 128 bits of the system's generator, in hexadecimal.
    static func makeToken() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(UInt64.random(in: .min ... .max, using: &generator), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Returns the answer to a request that is refused; nil if it is allowed.
    func refusal(of request: StudioRequest) -> StudioResponse? {
        let names = ["127.0.0.1", "localhost"].flatMap { port == 80 ? [$0, "\($0):80"] : ["\($0):\(port)"] }
        let hosts = request.headers["host"]
        guard hosts.count == 1, names.contains(hosts[0].lowercased()) else {
            return .text(
                .forbidden, "refused: the host of the address is not this computer. Open the address that strata printed")
        }
        let isFile = !request.path.hasPrefix("/api/")
        let isKnown =
            [request.query["token"], request.headers.first(name: "X-Strata-Token")].contains { Self.areEqual($0, token) }
            || isFile && Self.areEqual(request.cookie(cookie), cookieSecret)
        guard isKnown else {
            return .text(.forbidden, "refused: the address has no valid token. Open the whole address that strata printed")
        }
        guard request.method != .GET, request.method != .HEAD else { return nil }
        guard request.headers["origin"] == ["http://\(hosts[0].lowercased())"] else {
            return .text(.forbidden, "refused: a change was sent by another page. Open the address that strata printed")
        }
        return nil
    }

    /// Adds the headers that every answer has. After a valid token in the address, the browser gets the cookie.
    func complete(_ response: inout StudioResponse, to request: StudioRequest?) {
        let headers = [
            (
                "Content-Security-Policy",
                "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cache-Control", "no-store"),
        ]
        for (name, value) in headers { response.headers.replaceOrAdd(name: name, value: value) }
        if let request, request.path == "/", Self.areEqual(request.query["token"], token) {
            response.headers.add(name: "Set-Cookie", value: "\(cookie)=\(cookieSecret); HttpOnly; SameSite=Strict; Path=/")
        }
    }

    /// Compares in a time that does not depend on the place of the first difference.
    private static func areEqual(_ given: String?, _ wanted: String) -> Bool {
        guard let given else { return false }
        let (one, other) = (Array(given.utf8), Array(wanted.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
