import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The folder of the pictures, which `make screenshots` names.
private let pictures = ProcessInfo.processInfo.environment["STRATA_SCREENSHOTS"]

/// Writes the pictures of the page that the documentation shows.
@Suite(
    .enabled(if: Browser.path != nil && pictures != nil, "no Chromium is installed, or STRATA_SCREENSHOTS names no folder"))
struct ScreenshotTests {
    /// The greatest size of a picture in bytes, because the repository keeps each version of it.
    private static let limit = 80_000

    private static func model() throws -> Model {
        try Model([
            EntityDescription(
                name: "Artist",
                properties: [
                    .attribute(.init(name: "name", type: .string, index: .unique)),
                    .attribute(.init(name: "founded", type: .int32, isOptional: true)),
                    .relationship(.init(name: "albums", destination: "Album", inverse: "artist", cardinality: .toMany)),
                ]),
            EntityDescription(
                name: "Album",
                properties: [
                    .attribute(.init(name: "title", type: .string, index: .indexed)),
                    .attribute(.init(name: "released", type: .date)),
                    .relationship(.init(name: "artist", destination: "Artist", inverse: "albums", cardinality: .toOne)),
                    .relationship(
                        .init(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, isOrdered: true)),
                ]),
            EntityDescription(
                name: "LiveAlbum",
                properties: [.attribute(.init(name: "venue", type: .string, isOptional: true))], superentity: "Album"),
            EntityDescription(
                name: "Track",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    .attribute(.init(name: "seconds", type: .int32, index: .indexed)),
                    .attribute(.init(name: "plays", type: .int64)),
                    .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
                    .relationship(.init(name: "playlists", destination: "Playlist", inverse: "tracks", cardinality: .toMany)),
                ]),
            EntityDescription(
                name: "Playlist",
                properties: [
                    .attribute(.init(name: "name", type: .string)),
                    .relationship(
                        .init(name: "tracks", destination: "Track", inverse: "playlists", cardinality: .toMany, isOrdered: true)),
                ]),
        ])
    }

    @Sendable private static func fill(_ context: ManagedObjectContext) {
        let playlist = context.insert("Playlist")
        playlist["name"] = "Sunday morning"
        var tracks: [ManagedObject] = []
        let words = ["Amber", "Harbor", "Paper", "Lantern", "Winter", "Garden", "River", "Copper", "Silent", "Morning"]
        for (number, name) in ["The Lighthouse Keepers", "Maria Santelmo", "Northern Choir"].enumerated() {
            let artist = context.insert("Artist")
            artist["name"] = .string(name)
            artist["founded"] = .int(Int64(1985 + 9 * number))
            for part in 0..<3 {
                let album = context.insert(part == 2 ? "LiveAlbum" : "Album")
                album["title"] = .string("\(words[number * 3 + part]) \(part == 2 ? "Concert" : "Songs")")
                album["released"] = .double(Double(number * 3 + part) * 31_536_000)
                if part == 2 { album["venue"] = "Old Town Hall" }
                album.setRelatedObject("artist", to: artist)
                for place in 0..<9 {
                    let track = context.insert("Track")
                    track["title"] = .string("\(words[(number + place) % 10]) \(words[(part * 3 + place * 7) % 10])")
                    track["seconds"] = .int(Int64(140 + (number * 37 + part * 53 + place * 29) % 240))
                    track["plays"] = .int(Int64((number * 7919 + part * 104_729 + place * 1299) % 5000))
                    track.setRelatedObject("album", to: album)
                    tracks.append(track)
                }
            }
        }
        playlist.setRelatedObjects("tracks", to: [40, 7, 63, 22, 71].map { tracks[$0] })
    }

    @Test func `the pictures of the documentation are written`() async throws {
        let folder = URL(fileURLWithPath: try #require(pictures), isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let run = try await StudioRun(.lmdb, "--write", model: try Self.model(), fill: Self.fill)
        try await run.browse { browser in
            try await browser.resize(width: 900, height: 580)
            try await browser.go(to: run.address)
            try await browser.wait(for: "document.querySelector('svg a')")
            func show(_ page: String) async throws {
                _ = try await browser.value("location.hash = '#/\(page)'")
                try await browser.wait(for: "document.querySelector('main').dataset.page === '#/\(page)'")
            }
            func write(_ name: String) async throws {
                let picture = try await browser.screenshot()
                #expect(picture.count <= Self.limit, "\(name): \(picture.count) bytes")
                try picture.write(to: folder.appending(path: "studio-\(name).png"))
            }
            try await write("schema")
            try await show("table/Track")
            try await browser.write("album.artist.name = 'Northern Choir' and seconds > 330", into: "#filter")
            try await browser.click("button", "Show")
            try await browser.wait(for: "document.querySelector('#facts')?.textContent.includes(' objects,')")
            try await write("table")
            let list = try await run.keys("Playlist")[0]
            try await show("edit/Playlist/\(list)")
            try await browser.wait(for: "document.querySelector('#list-tracks-members')")
            try await browser.write("Sunday evening", into: "#field-name")
            try await browser.click("#list-tracks-members button", "↓")
            try await browser.click("#list-tracks-members li:last-child button", "Remove")
            try await browser.click("button", "Preview")
            try await browser.wait(for: "document.querySelector('#save')")
            _ = try await browser.value("scrollTo(0, 0)")
            try await write("edit")
            try await browser.click("#save")
            try await browser.wait(for: "document.title.includes('Sunday evening')")
            try await show("history")
            try await browser.wait(for: "document.querySelector('[data-save=\"2\"] .after')")
            _ = try await browser.value("scrollTo(0, 0)")
            try await write("history")
        }
    }
}
