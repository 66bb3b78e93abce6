import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The page in a real browser.
@Suite(.serialized, .enabled(if: Browser.path != nil, "no Chromium is installed: install the package chromium"))
struct BrowserTests {
    /// Starts the tool and a browser that shows it.
    private func browse(
        _ kind: StoreKind, _ options: [String] = ["--write"],
        fill: @escaping @Sendable (ManagedObjectContext) throws -> Void = StudioRun.fill,
        _ body: (StudioRun, Browser) async throws -> Void
    ) async throws {
        let run = try await StudioRun(kind, options.first ?? "--port=0", fill: fill)
        try await run.browse { browser in
            try await browser.go(to: run.address)
            try await body(run, browser)
        }
    }

    private func title(_ text: String) -> String { "document.querySelector('h2')?.textContent.startsWith('\(text)')" }

    @Test(arguments: fileKinds)
    func `a user clicks from the schema to a table, an object, its edit, and the history`(_ kind: StoreKind) async throws {
        try await browse(kind) { run, browser in
            try await browser.wait(for: title("Schema"))
            #expect(try await browser.value("location.search") == "", "the address shows no token")
            #expect(try await browser.value("document.cookie") == "", "scripts cannot read the token")
            try await browser.click("svg a", "Track")
            try await browser.wait(for: title("Track"))
            #expect(try await browser.value("document.querySelectorAll('tbody tr').length") == "50")
            // Filter.
            try await browser.press("/", code: 191, text: "/")
            try await browser.write("plays > 'x'", into: "#filter")
            try await browser.press("Enter", code: 13, text: "\r")
            try await browser.wait(for: "document.querySelector('.error')?.textContent.includes('at character 9')")
            try await browser.write("plays = 7", into: "#filter")
            try await browser.click("button", "Show")
            try await browser.wait(for: "document.querySelector('#facts')?.textContent.startsWith('1 object,')")
            // To the object, and along a relationship and back.
            try await browser.click("tbody th a")
            try await browser.wait(for: "document.title.includes('– Track 7 –')")
            try await browser.click("td a", "Parklife")
            try await browser.wait(for: "document.title.includes('Parklife')")
            try await browser.click("ul.flat a", "Track 7")
            try await browser.wait(for: "document.title.includes('– Track 7 –')")
            // Edit, preview, save.
            try await browser.click("a", "Edit")
            try await browser.write("Girls & <b>Boys</b>", into: "#field-title")
            try await browser.click("button", "Preview")
            try await browser.wait(for: "document.querySelector('#preview .after')?.textContent === 'Girls & <b>Boys</b>'")
            #expect(try await browser.value("document.querySelector('#preview .before').textContent") == "Track 7")
            try await browser.click("#save")
            // The line that tells about the save may be replaced at once, when the page hears of the save.
            try await browser.wait(for: "document.title.includes('Girls & <b>Boys</b>')")
            // The history, with the values before and after.
            try await browser.click("nav a", "History")
            try await browser.wait(
                for: "document.querySelector('[data-save=\"2\"] .after')?.textContent === 'Girls & <b>Boys</b>'")
            #expect(try await browser.value("document.querySelector('[data-save=\"2\"] .before').textContent") == "Track 7")
            #expect(try await browser.value("document.querySelectorAll('main b').length") == "0")
        }
    }

    @Test func `a user adds, moves and removes the members of a list`() async throws {
        try await browse(.lmdb) { run, browser in
            let key = try await run.keys("Track", filter: "plays = 100")[0]
            let list = try await run.keys("Playlist")[0]
            try await browser.wait(for: title("Schema"))
            _ = try await browser.value("location.hash = '#/edit/Track/\(key)'")
            try await browser.wait(for: "document.querySelector('#list-playlists')")
            try await browser.write(list, into: "#list-playlists")
            try await browser.press("Enter", code: 13, text: "\r")
            try await browser.wait(for: "document.querySelectorAll('#list-playlists-members li').length === 1")
            try await browser.click("button", "Preview")
            try await browser.wait(for: "document.querySelector('#preview .after')?.textContent === '\(list)'")
            try await browser.click("#save")
            try await browser.wait(for: "document.querySelector('.flat a')?.textContent === 'early'")
            _ = try await browser.value("location.hash = '#/edit/Track/\(key)'")
            try await browser.click("#list-playlists-members button", "Remove")
            try await browser.wait(for: "document.querySelectorAll('#list-playlists-members li').length === 0")
            try await browser.click("button", "Preview")
            try await browser.wait(for: "document.querySelector('#preview .after')?.textContent === 'no objects'")
            try await browser.click("#save")
            try await browser.wait(for: "document.querySelector('main').dataset.page === '#/object/Track/\(key)'")
            try await browser.wait(for: "document.querySelector('main').textContent.includes('0 of Playlist')")
        }
    }

    @Test func `a conflict is shown in words, and a new edit saves`() async throws {
        try await browse(.lmdb) { run, browser in
            let key = try await run.keys("Track", filter: "plays = 7")[0]
            try await browser.wait(for: title("Schema"))
            _ = try await browser.value("location.hash = '#/edit/Track/\(key)'")
            try await browser.write("mine", into: "#field-title")
            let container = try await run.container()
            try await container.write { context in
                try context.fetch(EntityFetchRequest("Track", matching: .equal("plays", .int(7))))[0]["title"] = "theirs"
            }
            try await container.close()
            try await browser.click("button", "Preview")
            try await browser.wait(for: "document.querySelector('.error')?.textContent.includes('in the store \"theirs\"')")
            #expect(try await browser.value("document.querySelector('#save')") == "null")
            try await browser.click("button", "Begin again")
            try await browser.wait(for: "document.querySelector('#field-title')?.value === 'theirs'")
            try await browser.write("mine", into: "#field-title")
            try await browser.click("button", "Preview")
            try await browser.click("#save")
            try await browser.wait(for: "document.title.includes('– mine –')")
        }
    }

    @Test(arguments: fileKinds)
    func `saves of another process are shown without a reload`(_ kind: StoreKind) async throws {
        try await browse(kind, []) { run, browser in
            try await browser.click("#tables a", "Artist")
            try await browser.wait(for: title("Artist"))
            let container = try await run.container()
            try await container.write { $0.insert("Artist")["name"] = "Pulp" }
            // The number of objects changes. The table keeps its state until it is refreshed.
            try await browser.wait(for: "document.querySelector('#tables').textContent.includes('Artist3')")
            try await browser.wait(for: "document.querySelector('.newer')?.hidden === false")
            #expect(try await browser.value("document.querySelectorAll('tbody tr').length") == "2")
            try await browser.click(".newer button")
            try await browser.wait(for: "document.querySelectorAll('tbody tr').length === 3")
            // An object is read again.
            try await browser.click("tbody th a")
            try await browser.wait(for: "document.title.includes('Blur')")
            try await container.write { context in
                try context.fetch(EntityFetchRequest("Artist", matching: .equal("name", "Blur")))[0]["name"] = "blur"
            }
            try await browser.wait(for: "document.querySelector('h2').textContent.includes('blur')")
            try await container.close()
        }
    }

    @Test func `values are never HTML, on any page`() async throws {
        let attack = "<img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>"
        let fill: @Sendable (ManagedObjectContext) throws -> Void = { context in
            let artist = context.insert("Artist")
            artist["name"] = .string(attack)
            let album = context.insert("Album")
            album["title"] = .string(attack)
            album.setRelatedObject("artist", to: artist)
        }
        try await browse(.lmdb, fill: fill) { run, browser in
            let key = try await run.keys("Album")[0]
            for page in ["table/Album", "object/Album/\(key)", "edit/Album/\(key)", "delete/Album/\(key)", "history", "save/1"] {
                try await browser.wait(for: "document.querySelector('main[data-page]')")
                _ = try await browser.value("location.hash = '#/\(page)'")
                try await browser.wait(for: "document.querySelector('main').dataset.page === '#/\(page)'")
                #expect(try await browser.value("document.querySelectorAll('main img, main script').length") == "0", "\(page)")
                #expect(try await browser.value("window.attacked") == "undefined", "\(page)")
            }
            _ = try await browser.value("location.hash = '#/object/Album/\(key)'")
            try await browser.wait(for: "document.querySelector('td a')?.textContent.startsWith('<img')")
        }
    }

    @Test func `an edit that is left without a word keeps no state of the store`() async throws {
        try await browse(.lmdb) { run, browser in
            func editStates() async throws -> Int {
                let snapshots = try #require(try await run.json("snapshots")["snapshots"] as? [[String: Any]])
                return snapshots.count { ($0["owners"] as? [String])?.contains("studio: edit") == true }
            }
            let key = try await run.keys("Track")[0]
            try await browser.wait(for: title("Schema"))
            _ = try await browser.value("location.hash = '#/edit/Track/\(key)'")
            try await browser.wait(for: "document.querySelector('#field-title')")
            #expect(try await editStates() == 1)
            try await browser.click("nav a", "History")
            try await until("the end of the edit") { try await editStates() == 0 }
        }
    }

    @Test func `the keyboard alone leads from the schema to an object and back`() async throws {
        try await browse(.lmdb) { run, browser in
            /// Presses the tab key until an element with a text has the focus.
            func tab(to text: String) async throws {
                for _ in 0..<200 where try await browser.value("document.activeElement.textContent.trim()") != text {
                    try await browser.press("Tab", code: 9)
                }
                #expect(try await browser.value("document.activeElement.matches(':focus-visible')") == "true")
                #expect(try await browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid", "\(text)")
                try await browser.press("Enter", code: 13, text: "\r")
            }
            try await browser.wait(for: title("Schema"))
            try await tab(to: "Artist")
            try await browser.wait(for: title("Artist"))
            let key = try await run.keys("Artist")[0]
            try await tab(to: key)
            try await browser.wait(for: "document.title.includes('Blur')")
            try await tab(to: "Parklife")
            try await browser.wait(for: "document.title.includes('Parklife')")
            _ = try await browser.value("history.back()")
            try await browser.wait(for: "document.title.includes('Blur')")
        }
    }

    @Test func `every page fits 400 pixels, by day and by night, and has a heading that has the focus`() async throws {
        try await browse(.lmdb) { run, browser in
            let key = try await run.keys("Track")[0]
            let pages = [
                "schema", "table/Track", "object/Track/\(key)", "edit/Track/\(key)", "insert/Track", "delete/Track/\(key)",
                "history",
                "snapshots", "file",
            ]
            try await browser.wait(for: title("Schema"))
            for dark in [false, true] {
                try await browser.resize(width: 400, height: 800, dark: dark)
                for page in pages {
                    _ = try await browser.value("location.hash = '#/\(page)'")
                    try await browser.wait(for: "document.querySelector('main').dataset.page === '#/\(page)'")
                    #expect(try await browser.value("document.documentElement.scrollWidth <= innerWidth") == "true", "\(page)")
                    #expect(try await browser.value("document.activeElement.tagName") == "H2", "\(page)")
                    #expect(try await browser.value("document.querySelector('.error')?.textContent") == "undefined", "\(page)")
                    let unlabelled = """
                        [...document.querySelectorAll('main input, main select, main textarea')].filter(e => e.labels.length === 0).length
                        """
                    #expect(try await browser.value(unlabelled) == "0", "\(page)")
                }
                let color = try await browser.value("getComputedStyle(document.body).backgroundColor")
                #expect((color == "rgb(255, 255, 255)") == !dark, "\(color)")
            }
        }
    }
}
