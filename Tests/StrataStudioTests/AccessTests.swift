import Foundation
import TestSupport
import Testing

/// Which requests the page answers.
@Suite struct AccessTests {
    @Test func `a request without the token, or with another one, is refused`() async throws {
        let run = try await StudioRun(.lmdb)
        let other = String(run.token.reversed())
        let cookie = "strata-studio-\(run.client.port)"
        let attempts: [(String, [(String, String)])] = [
            ("GET /", []), ("GET /studio.js", []), ("GET /api/store", []), ("GET /?token=", []), ("GET /?token=\(other)", []),
            ("GET /", [("Cookie", "\(cookie)=\(other)")]), ("GET /", [("Cookie", "\(cookie)=\(run.token)")]),
            ("GET /api/store", [("X-Strata-Token", other)]), ("GET /api/store", [("X-Strata-Token", run.token + "0")]),
            ("GET /api/store", [("X-Strata-Token", "\(run.token.dropLast())")]),
            ("GET /api/store", [("X-Strata-Token", ""), ("Cookie", "\(cookie)=\(run.token)")]),
            ("GET /api/events?token=\(other)", []),
        ]
        for (head, headers) in attempts {
            let response = try await run.client.send(head, [("Host", run.host)] + headers)
            #expect(response.status == 403, "\(head) \(headers)")
            #expect(response.headers["set-cookie"] == nil && !response.text.contains(run.token))
        }
        #expect(run.token.count == 32)
        #expect(try await run.stop() == 0)
    }

    @Test func `the address sets a cookie that opens the files of the page, but no data`() async throws {
        let run = try await StudioRun(.lmdb)
        let response = try await run.client.send("GET /?token=\(run.token)", [("Host", run.host)])
        #expect(response.status == 200 && response.text.contains("<!doctype html>"))
        let cookie = try #require(response.headers["set-cookie"])
        #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(run.token))
        // Browsers send it to each port of the computer, so it must not open the store.
        let pair = String(cookie.prefix { $0 != ";" })
        for (path, status) in [("/", 200), ("/studio.js", 200), ("/api/store", 403), ("/api/events", 403)] {
            let answer = try await run.client.send("GET \(path)", [("Host", run.host), ("Cookie", pair)])
            #expect(answer.status == status, "\(path)")
        }
        #expect(response.headers["content-security-policy"]?.hasPrefix("default-src 'self'; ") == true)
        #expect(response.headers["x-content-type-options"] == "nosniff")
        // The page loads nothing from other places.
        for path in ["/", "/studio.css", "/studio.js"] {
            let file = try await run.get(path)
            #expect(file.status == 200)
            let elsewhere = file.text.matches(of: /https?:\/\/[a-z0-9.]+/).map { String($0.0) }
            #expect(Set(elsewhere).isSubset(of: ["http://www.w3.org"]), "\(path): \(elsewhere)")
        }
        try await run.stop()
    }

    @Test func `another name of the host, or another origin of a change, is refused`() async throws {
        let run = try await StudioRun(.lmdb, "--write")
        let token = run.headers[1]
        for host in ["evil.example", "evil.example:\(run.client.port)", "127.0.0.1", "127.0.0.1:1", ""] {
            let response = try await run.client.send("GET /api/store", [("Host", host), token])
            #expect(response.status == 403, "\(host)")
        }
        let localhost = try await run.client.send("GET /api/store", [("Host", "localhost:\(run.client.port)"), token])
        #expect(localhost.status == 200)
        let body = Data(#"{"entity":"Artist"}"#.utf8)
        for origin in [nil, "null", "http://evil.example", "http://127.0.0.1:1", "https://\(run.host)"] {
            let headers = run.headers + [("Content-Type", "application/json")] + (origin.map { [("Origin", $0)] } ?? [])
            let response = try await run.client.send("POST /api/edit/begin", headers, body)
            #expect(response.status == 403, "\(origin ?? "none")")
        }
        let form = run.headers + [("Origin", "http://\(run.host)"), ("Content-Type", "text/plain")]
        #expect(try await run.client.send("POST /api/edit/begin", form, body).status == 415)
        try await run.stop()
    }

    @Test func `wrong and too large requests are answered, and the next one is served`() async throws {
        let run = try await StudioRun(.lmdb, "--write")
        #expect(try await run.get("/nothing").status == 404)
        #expect(try await run.get("/api/nothing").status == 404)
        #expect(try await run.get("/api/table", ["entity": "Nobody"]).status == 404)
        #expect(try await run.get("/api/object", ["entity": "Artist", "key": "x"]).status == 400)
        #expect(try await run.get("/api/object", ["entity": "Artist", "key": "99999"]).status == 404)
        #expect(try await run.client.send("DELETE /api/store", run.headers + [("Origin", "http://\(run.host)")]).status == 405)
        #expect(try await run.client.send("GET /%zz", run.headers).status >= 400)
        #expect(try await run.client.send("GET http://evil.example/", run.headers).status == 400)
        let change = run.headers + [("Origin", "http://\(run.host)"), ("Content-Type", "application/json")]
        #expect(try await run.client.send("POST /api/edit/begin", change, Data("[]".utf8)).status == 400)
        #expect(try await run.client.send("POST /api/edit/begin", change, Data(count: 1_100_000)).status == 413)
        // The parser of HTTP refuses what is none.
        let noise = try await run.client.open("\u{1}\u{2}", [])
        _ = try await HTTPClient.blocking { try noise.readToEnd() }
        #expect(try await run.get("/api/store").status == 200)
        try await run.stop()
    }

    @Test func `only this computer is listened to, and a used port is refused with a remedy`() async throws {
        let run = try await StudioRun(.sqlite)
        #expect(run.address.hasPrefix("http://127.0.0.1:\(run.client.port)/?token="))
        #if os(Linux)
            // Another address of this computer.
            await #expect(throws: HTTPClient.Failure.self) {
                try await HTTPClient.blocking { _ = try HTTPClient.Connection(run.client.port, address: "127.0.0.2") }
            }
        #endif
        let second = try await StudioProcess.refused(run.bed.file.path, "--port", "\(run.client.port)")
        #expect(second.status == 1)
        #expect(
            second.output.contains("port \(run.client.port): another program uses it. Choose another port with --port"),
            "\(second.output)")
        try await run.stop()
    }
}
