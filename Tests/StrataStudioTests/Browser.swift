import Foundation
import Synchronization
import TestSupport
import Testing

/// A headless Chromium with one page, driven by the DevTools protocol over two pipes: messages of JSON, each ended by a zero byte.
final class Browser: Sendable {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// The path of the browser; nil if none is installed.
    static let path: String? = {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
        return names.lazy.flatMap { name in folders.map { "\($0)/\(name)" } }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    private let commands: Int32
    private let answers: Int32
    private let running: Task<ChildProgram.Result, any Error>
    private let folder: URL
    private let unread = Mutex(Data())
    private let count = Mutex(0)
    private let session = Mutex<String?>(nil)
    /// The errors of scripts and of loading.
    private let complaints = Mutex<[String]>([])

    var errors: [String] { complaints.withLock { $0 } }

    /// Starts the browser.
    ///
    /// - Parameter folder: A folder for its profile and the pipes.
    init(in folder: URL) async throws {
        guard let path = Self.path else { throw Failure(description: "no Chromium is installed") }
        self.folder = folder
        let pipes = ["commands", "answers"].map { folder.appending(path: $0).path }
        for pipe in pipes where mkfifo(pipe, 0o600) != 0 { throw Failure(description: "no pipe: \(errno)") }
        let script = """
            exec "$1" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions \
            --disable-background-networking --remote-debugging-pipe --user-data-dir="$2" about:blank 3< "$3" 4> "$4"
            """
        let command = ["-c", script, "browser", path, folder.appending(path: "profile").path] + pipes
        running = Task { try await HTTPClient.blocking { try ChildProgram.run("/bin/bash", command) } }
        (commands, answers) = try await HTTPClient.blocking { (open(pipes[0], O_WRONLY), open(pipes[1], O_RDONLY)) }
        guard commands >= 0, answers >= 0 else { throw Failure(description: "the pipes do not open: \(errno)") }
        let targets = try await call("Target.getTargets")["targetInfos"] as? [[String: Any]]
        guard let page = targets?.first(where: { $0["type"] as? String == "page" })?["targetId"] as? String else {
            throw Failure(description: "the browser has no page")
        }
        let attached = try await call("Target.attachToTarget", ["targetId": page, "flatten": true])["sessionId"] as? String
        session.withLock { $0 = attached }
        for domain in ["Page", "Runtime", "Log"] { _ = try await call("\(domain).enable") }
    }

    /// Ends the browser.
    func close() async {
        session.withLock { $0 = nil }
        _ = try? await call("Browser.close")
        _ = try? await running.value
        Foundation.close(commands)
        Foundation.close(answers)
    }

    // MARK: The page

    func go(to address: String) async throws { _ = try await call("Page.navigate", ["url": address]) }

    func resize(width: Int, height: Int, dark: Bool = false) async throws {
        _ = try await call(
            "Emulation.setDeviceMetricsOverride", ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false])
        _ = try await call(
            "Emulation.setEmulatedMedia", ["features": [["name": "prefers-color-scheme", "value": dark ? "dark" : "light"]]])
    }

    /// Returns the visible part of the page as a PNG.
    func screenshot() async throws -> Data {
        let text = try await call("Page.captureScreenshot", ["format": "png"])["data"] as? String
        guard let data = text.flatMap({ Data(base64Encoded: $0) }) else { throw Failure(description: "no screenshot") }
        return data
    }

    /// Returns the value of an expression as text.
    func value(_ expression: String) async throws -> String {
        let found = try await call("Runtime.evaluate", ["expression": "String(\(expression))", "returnByValue": true])
        if let exception = found["exceptionDetails"] { throw Failure(description: "\(expression): \(exception)") }
        return (found["result"] as? [String: Any])?["value"] as? String ?? ""
    }

    /// Waits until an expression is true.
    func wait(for expression: String) async throws {
        do {
            try await until(expression) {
                // While the page is loaded, parts of it may be missing.
                ((try? await value("Boolean(\(expression))")) ?? "") == "true"
            }
        } catch {
            throw Failure(description: "\(error); the page: \(try await value("document.body.innerText")) \(errors)")
        }
    }

    /// Clicks the first element of a selector whose text begins in a way, once there is one. The page cannot move the element meanwhile,
    /// because finding and clicking it is one step of the page.
    func click(_ selector: String, _ text: String = "") async throws {
        let quoted = [selector, text].map { "'" + $0.replacing("'", with: "\\'") + "'" }
        let event = "new MouseEvent('click', { bubbles: true, cancelable: true, view: window })"
        try await wait(
            for: """
                (() => { const all = [...document.querySelectorAll(\(quoted[0]))];
                const e = all.find(e => e.textContent.trim().startsWith(\(quoted[1])));
                if (!e) return false; e.scrollIntoView({ block: 'center', inline: 'center' }); e.dispatchEvent(\(event)); return true; })()
                """)
    }

    /// Replaces the text of a field, as a user does.
    func write(_ text: String, into selector: String) async throws {
        let quoted = "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
        try await wait(
            for: """
                (() => { const e = document.querySelector('\(selector)'); if (!e) return false; e.focus(); e.select();
                return document.execCommand('insertText', false, \(quoted)); })()
                """)
    }

    /// Presses a key.
    func press(_ key: String, code: Int, text: String? = nil) async throws {
        var event: [String: Any] = ["type": "keyDown", "key": key, "windowsVirtualKeyCode": code]
        event["text"] = text
        _ = try await call("Input.dispatchKeyEvent", event)
        _ = try await call("Input.dispatchKeyEvent", ["type": "keyUp", "key": key, "windowsVirtualKeyCode": code])
    }

    // MARK: Messages

    /// Sends a command and waits for its answer. Only one at a time is open.
    private func call(_ method: String, _ parameters: [String: Any] = [:]) async throws -> [String: Any] {
        let number = count.withLock { count in
            count += 1
            return count
        }
        var message: [String: Any] = ["id": number, "method": method, "params": parameters]
        message["sessionId"] = session.withLock { $0 }
        let bytes = try JSONSerialization.data(withJSONObject: message) + Data([0])
        let data = try await HTTPClient.blocking { [self] in
            try send(bytes)
            return try answer(number)
        }
        let object = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
        if let error = object["error"] { throw Failure(description: "\(method): \(error)") }
        return object["result"] as? [String: Any] ?? [:]
    }

    private func send(_ bytes: Data) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(commands, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Failure(description: "the browser has ended") }
            rest = rest.dropFirst(count)
        }
    }

    private func answer(_ number: Int) throws -> Data {
        while true {
            let message = try next()
            let object = try JSONSerialization.jsonObject(with: message) as? [String: Any] ?? [:]
            if object["id"] as? Int == number { return message }
            let entry = (object["params"] as? [String: Any])?["entry"] as? [String: Any]
            // Errors that the tool answers with are shown on the page.
            let isAnswer =
                (entry?["text"] as? String)?.contains("status of 4") == true
                && (entry?["url"] as? String)?.contains("/api/") == true
            if let method = object["method"] as? String, ["Runtime.exceptionThrown", "Log.entryAdded"].contains(method), !isAnswer
            {
                complaints.withLock { $0.append(String(decoding: message, as: UTF8.self)) }
            }
        }
    }

    private func next() throws -> Data {
        var data = unread.withLock { $0 }
        while true {
            if let end = data.firstIndex(of: 0) {
                let rest = Data(data[(end + 1)...])
                unread.withLock { $0 = rest }
                return Data(data[..<end])
            }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = read(answers, &buffer, buffer.count)
            guard count > 0 else { throw Failure(description: "the browser has ended") }
            data += buffer.prefix(count)
        }
    }
}

extension StudioRun {
    /// Runs `body` with a browser, and stops the browser and the tool.
    func browse(_ body: (Browser) async throws -> Void) async throws {
        let browser = try await Browser(in: bed.folder)
        do {
            try await body(browser)
            #expect(browser.errors.isEmpty, "\(browser.errors)")
        } catch {
            await browser.close()
            try await stop()
            throw error
        }
        await browser.close()
        #expect(try await stop() == 0)
    }
}
