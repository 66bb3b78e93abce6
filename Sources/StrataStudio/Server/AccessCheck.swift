import NIOHTTP1

/// Decides which requests come from the user of this computer who has seen the address.
///
/// The token keeps out other users and programs. The Host header keeps out pages of other sites whose names were changed to lead to this
/// computer. The Origin header keeps other sites from sending changes with the browser's cookie.
struct AccessCheck: Sendable {
    let token: String
    let port: Int

    /// The name has the port, because browsers send a cookie to every port of a computer.
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
        let isKnown = [request.cookie(cookie), request.query["token"]].contains { $0.map(isToken) == true }
        guard isKnown else {
            return .text(.forbidden, "refused: the address has no valid token. Open the whole address that strata printed")
        }
        guard request.method != .GET, request.method != .HEAD else { return nil }
        guard request.headers["origin"] == ["http://\(hosts[0].lowercased())"] else {
            return .text(.forbidden, "refused: a change was sent by another page. Open the address that strata printed")
        }
        return nil
    }

    /// Adds the headers that every answer has. After a valid token in the address, the browser keeps it in a cookie that scripts cannot read.
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
        if request?.query["token"].map(isToken) == true {
            response.headers.add(name: "Set-Cookie", value: "\(cookie)=\(token); HttpOnly; SameSite=Strict; Path=/")
        }
    }

    /// Compares in a time that does not depend on the place of the first difference.
    private func isToken(_ text: String) -> Bool {
        let (given, wanted) = (Array(text.utf8), Array(token.utf8))
        guard given.count == wanted.count else { return false }
        return zip(given, wanted).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
