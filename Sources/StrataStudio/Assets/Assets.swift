import Foundation
import NIOHTTP1

/// The files of the page. They are part of the program, so that it needs no folder beside it.
enum Assets {
    private static let files: [String: (type: String, text: String)] = [
        "/": ("text/html; charset=utf-8", page),
        "/studio.svg": ("image/svg+xml", icon),
        "/studio.css": ("text/css; charset=utf-8", style),
        "/studio.js": (
            "text/javascript; charset=utf-8", script + tableScript + objectScript + editScript + storeScript + startScript
        ),
    ]

    /// Returns the file that a request asks for; nil if there is none of this name.
    static func response(to request: StudioRequest) throws -> StudioResponse? {
        guard let file = files[request.path] else { return nil }
        guard request.method == .GET || request.method == .HEAD else {
            throw PageError(.methodNotAllowed, "\(request.method.rawValue): not allowed here. Use GET")
        }
        return StudioResponse(.ok, type: file.type, body: .data(Data(file.text.utf8)))
    }
}
