import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Random changes and saves, compared with a plain model that knows the rules (S061).
@Suite struct RandomRuleTests {
    @Test(arguments: Combination.all)
    func `S061: saves and reports agree with a plain model after random changes`(_ combination: Combination) async throws {
        var random = SeededGenerator(test: "\(combination)")
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        var (first, second) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        var saved = PlainShelf()
        for round in 0..<Rounds.of(6, long: 300) {
            // The other context takes over, after it has seen the saves.
            if random.chance(30) { swap(&first, &second) }
            let worker = first
            if combination.stack == .siblings || combination.stack == .split {
                await worker.perform { $0.refreshAllObjects() }
            } else {
                try await worker.refreshFromParent()
            }
            try await Self.letTimePass(container, &random)
            var plain = saved
            var isSaved = false
            // Refused saves are repaired by more changes, or given up.
            for attempt in 0..<6 where !isSaved {
                let steps = (0..<random.below(12) + 1).map { _ in ShelfStep(&random, repairs: attempt > 0) }
                // A child shows what its parent has not saved. Its own save checks the rules of its own changes.
                let isInChild = random.chance(30)
                let author = isInChild ? await worker.perform { $0.newBackgroundChild() } : worker
                let start = plain
                let generator = random
                let outcome = try await author.perform { context in
                    var (plain, random) = (start, generator)
                    for step in steps { try plain.apply(step, to: context, &random) }
                    let report = try context.validationReport(limit: .max)
                    return (plain, random, Broken.all(of: report.violations))
                }
                (plain, random) = (outcome.0, outcome.1)
                try await Self.letTimePass(container, &random)
                #expect(outcome.2 == plain.broken, "round \(round), seed \(random.seed)")
                if isInChild, await !saves(author, plain.broken, "round \(round), seed \(random.seed)") {
                    plain = start
                    continue
                }
                if random.chance(50) {
                    let preview = await worker.previewSave()
                    #expect(
                        (Broken.all(in: preview.failure) ?? []) == plain.broken, "round \(round), seed \(random.seed): \(preview)"
                    )
                }
                let error = await failure { try await worker.save(through: .store, Self.durability(&random)) }
                isSaved = error == nil
                #expect(
                    error == nil ? plain.broken.isEmpty : Broken.all(in: error) == plain.broken,
                    "round \(round), seed \(random.seed): \(String(describing: error)), expected \(plain.broken)")
            }
            if isSaved {
                saved = plain
            } else {
                await worker.perform { $0.rollback() }
            }
            #expect(try await container.coordinator.validationReport().isValid, "round \(round), seed \(random.seed)")
        }
        try await container.close()
    }

    /// Returns a durability. The bound of deferred saves is far, so that none is written because of the clock.
    private static func durability(_ random: inout SeededGenerator) -> Durability {
        random.chance(50) ? .durable : .deferred(within: .seconds(600))
    }

    /// Does what the writers do after a time: they release the snapshots of their states, and write deferred saves. The seed decides when.
    private static func letTimePass(_ container: PersistentContainer, _ random: inout SeededGenerator) async throws {
        if random.chance(30) {
            for coordinator in [container.coordinator, container.backgroundCoordinator] {
                try await coordinator.writer.onQueue { $0.rest() }
            }
        }
        if random.chance(30) { try await container.flush() }
    }

    /// Saves a child. Returns whether it succeeded. A failure may name only rules that are broken.
    private func saves(_ child: BackgroundContext, _ broken: [Broken], _ comment: String) async -> Bool {
        guard let error = await failure(of: { try await child.save() }) else { return true }
        let reported = Broken.all(in: error).map { Set($0).isSubset(of: broken) }
        #expect(reported == true, "\(comment): a child: \(error), expected \(broken)")
        return false
    }
}

/// One random change.
private struct ShelfStep: Sendable {
    enum Kind: Int, CaseIterable {
        case insertAlbum, insertTrack, insertTag, insertReview, insertPlaylist, title, rating, code, moveTrack, tag, untag, item,
            review
        case deleteAlbum, deleteTrack, deleteTag, deleteReview, deletePlaylist
    }

    var kind: Kind
    /// Whether the step gives only valid values, and adds members rather than removing them.
    var repairs: Bool

    init(_ random: inout SeededGenerator, repairs: Bool) {
        kind = Kind.allCases[random.below(Kind.allCases.count)]
        self.repairs = repairs && random.chance(70)
    }
}

/// The objects of the model as plain values.
private struct PlainShelf: Sendable {
    struct Album {
        var title = "new"
        var rating: Double?
        var code: String? = "AB1"
        var tags: Set<ObjectID> = []
    }

    private var albums: [ObjectID: Album] = [:]
    /// The album of each track.
    private var tracks: [ObjectID: ObjectID?] = [:]
    private var tags: Set<ObjectID> = []
    private var reviews: [ObjectID: ObjectID?] = [:]
    private var playlists: [ObjectID: Set<ObjectID>] = [:]

    /// The broken rules of all objects.
    var broken: [Broken] {
        var broken: [Broken] = []
        for (id, album) in albums {
            if !(1...8).contains(album.title.count) { broken.append(Broken(id, "title", .string(album.title))) }
            if let rating = album.rating, rating < 0 || rating > 5 { broken.append(Broken(id, "rating", .double(rating))) }
            let code = album.code ?? ""
            let isCode =
                code.count > 2 && code.prefix(2).allSatisfy { "A"..."Z" ~= $0 }
                && code.dropFirst(2).allSatisfy { "0"..."9" ~= $0 }
            if !isCode { broken.append(Broken(id, "code", album.code.map { .string($0) } ?? .null)) }
            let count = tracks.values.count { $0 == id }
            if !(1...3).contains(count) { broken.append(Broken(id, "tracks", .int(Int64(count)))) }
            if album.tags.count > 2 { broken.append(Broken(id, "tags", .int(Int64(album.tags.count)))) }
        }
        for (id, album) in reviews where album == nil { broken.append(Broken(id, "album", .null)) }
        for (id, items) in playlists where items.isEmpty { broken.append(Broken(id, "items", 0)) }
        return broken.sorted()
    }

    private static func pick(_ ids: some Collection<ObjectID>, _ random: inout SeededGenerator) -> ObjectID? {
        ids.isEmpty ? nil : ids.sorted { $0.key < $1.key }[random.below(ids.count)]
    }

    mutating func apply(_ step: ShelfStep, to context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        switch step.kind {
        case .insertAlbum, .insertTrack, .insertTag, .insertReview, .insertPlaylist: insert(step, context, &random)
        case .title, .rating, .code: setValue(step, context, &random)
        case .moveTrack, .tag, .untag, .item, .review: relate(step, context, &random)
        case .deleteAlbum, .deleteTrack, .deleteTag, .deleteReview, .deletePlaylist:
            if !step.repairs { delete(step, context, &random) }
        }
    }

    private mutating func insert(_ step: ShelfStep, _ context: ManagedObjectContext, _ random: inout SeededGenerator) {
        switch step.kind {
        case .insertAlbum:
            let album = context.insert("Album")
            (album["title"], album["code"]) = ("new", "AB1")
            albums[album.objectID] = Album()
            guard random.chance(70) else { return }
            let track = context.insert("Track")
            track.setRelatedObject("album", to: album)
            tracks[track.objectID] = .some(album.objectID)
        case .insertTrack: tracks[context.insert("Track").objectID] = .some(nil)
        case .insertTag: tags.insert(context.insert("Tag").objectID)
        case .insertReview:
            let review = context.insert("Review")
            let album = Self.pick(albums.keys, &random)
            review.setRelatedObject("album", to: album.map { context.object(with: $0) })
            reviews[review.objectID] = .some(album)
        default:
            let playlist = context.insert("Playlist")
            let item = Self.pick(tracks.keys, &random)
            playlist.setRelatedObjects("items", to: item.map { [context.object(with: $0)] } ?? [])
            playlists[playlist.objectID] = item.map { [$0] } ?? []
        }
    }

    private mutating func setValue(_ step: ShelfStep, _ context: ManagedObjectContext, _ random: inout SeededGenerator) {
        let isWrong = !step.repairs && random.chance(30)
        guard let id = Self.pick(albums.keys, &random) else { return }
        let album = context.object(with: id)
        switch step.kind {
        case .title:
            let title = isWrong ? ["", "nine char"][random.below(2)] : ["a", "ééééé", "12345678", "🎸🎸"][random.below(4)]
            album["title"] = .string(title)
            albums[id]?.title = title
        case .rating:
            let rating: Double? = isWrong ? [-0.1, 5.01][random.below(2)] : [nil, 0, 2.5, 5][random.below(4)]
            album["rating"] = rating.map { .double($0) } ?? .null
            albums[id]?.rating = rating
        default:
            let code: String? = isWrong ? [nil, "", "AB", "xAB1", "AB1x"][random.below(5)] : ["AB1", "XY99"][random.below(2)]
            album["code"] = code.map { .string($0) } ?? .null
            albums[id]?.code = code
        }
    }

    private mutating func relate(_ step: ShelfStep, _ context: ManagedObjectContext, _ random: inout SeededGenerator) {
        let album = Self.pick(albums.keys, &random)
        switch step.kind {
        case .moveTrack:
            guard let track = Self.pick(tracks.keys, &random) else { return }
            let album = !step.repairs && random.chance(20) ? nil : album
            context.object(with: track).setRelatedObject("album", to: album.map { context.object(with: $0) })
            tracks[track] = .some(album)
        case .tag, .untag:
            guard let album, let tag = Self.pick(tags, &random) else { return }
            if step.kind == .tag, !step.repairs {
                // From either end.
                if random.chance(50) {
                    context.object(with: album).add(context.object(with: tag), to: "tags")
                } else {
                    context.object(with: tag).add(context.object(with: album), to: "albums")
                }
                albums[album]?.tags.insert(tag)
            } else {
                context.object(with: album).remove(context.object(with: tag), from: "tags")
                albums[album]?.tags.remove(tag)
            }
        case .item:
            guard let list = Self.pick(playlists.keys, &random), let track = Self.pick(tracks.keys, &random) else { return }
            if step.repairs || random.chance(60) {
                context.object(with: list).add(context.object(with: track), to: "items")
                playlists[list]?.insert(track)
            } else {
                context.object(with: list).remove(context.object(with: track), from: "items")
                playlists[list]?.remove(track)
            }
        default:
            guard let review = Self.pick(reviews.keys, &random) else { return }
            context.object(with: review).setRelatedObject("album", to: album.map { context.object(with: $0) })
            reviews[review] = .some(album)
        }
    }

    private mutating func delete(_ step: ShelfStep, _ context: ManagedObjectContext, _ random: inout SeededGenerator) {
        let ids: [ObjectID]
        switch step.kind {
        case .deleteAlbum: ids = Array(albums.keys)
        case .deleteTrack: ids = Array(tracks.keys)
        case .deleteTag: ids = Array(tags)
        case .deleteReview: ids = Array(reviews.keys)
        default: ids = Array(playlists.keys)
        }
        guard let id = Self.pick(ids, &random) else { return }
        context.delete(context.object(with: id))
        albums[id] = nil
        tracks[id] = nil
        tags.remove(id)
        reviews[id] = nil
        playlists[id] = nil
        for (track, album) in tracks where album == id { tracks[track] = .some(nil) }
        for (review, album) in reviews where album == id { reviews[review] = .some(nil) }
        for album in albums.keys { albums[album]?.tags.remove(id) }
        for list in playlists.keys { playlists[list]?.remove(id) }
    }
}
