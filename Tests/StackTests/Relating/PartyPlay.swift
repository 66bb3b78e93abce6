import ObjectGraph
import TestSupport
import Testing

/// Random operations on detached, inserted and deleted guests and parties, beside a plain model of what must be inserted.
///
/// `@unchecked Sendable` is right because only the executor of one context uses it.
final class PartyPlay: @unchecked Sendable {
    private struct Expected {
        var isInserted = false
        /// The index of the guest's party.
        var party: Int?
        var friends: Set<Int> = []
        /// Whether the object was deleted since the last save. It may have been new.
        var isDeleted = false
        /// The party of a deleted guest.
        var formerParty: Int?
    }

    private enum Thing {
        case guest(Guest)
        case party(Party)
    }

    private var things: [Thing] = []
    private var expected: [Expected] = []
    /// The state of the last save.
    private var saved: [Expected] = []
    /// The objects whose deletion is saved.
    private var gone: Set<Int> = []

    func step(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        switch random.below(100) {
        case 0..<25: make(&random)
        case 25..<45: join(&random)
        case 45..<65: befriend(&random)
        case 65..<72: leave(&random)
        case 72..<78:
            guard let index = any(&random) else { return }
            switch things[index] {
            case .guest(let guest): context.insert(guest)
            case .party(let party): context.insert(party)
            }
            insert(index)
        case 78..<84: delete(context, &random)
        case 84..<90: insertAgain(context, &random)
        // A child seals the layer with the changes so far.
        case 90..<92: _ = context.newBackgroundChild()
        default:
            if random.chance(50) { try check(context) }
        }
    }

    func didSave() {
        for index in expected.indices where expected[index].isDeleted {
            expected[index] = Expected()
            gone.insert(index)
        }
        saved = expected
    }

    /// Deleted objects are back. New objects are detached, without relationships, and may be inserted again. Those that were deleted again
    /// take part only after that.
    func didRollBack() {
        for index in expected.indices {
            if isSaved(index) {
                expected[index] = saved[index]
            } else if expected[index].isInserted {
                expected[index] = Expected()
            } else if expected[index].isDeleted {
                expected[index] = Expected(isDeleted: true)
            }
        }
    }

    func forget() { things = [] }

    /// Compares every object, and what fetches find, with the plain model.
    func check(_ context: ManagedObjectContext) throws {
        let inserted = expected.indices.filter { expected[$0].isInserted }
        for index in things.indices where !gone.contains(index) {
            if expected[index].isDeleted {
                if isSaved(index) { #expect(object(index).isDeleted, "object \(index)") }
                continue
            }
            let isInserted = object(index).managedObjectContext != nil
            #expect(isInserted == expected[index].isInserted, "object \(index)")
            guard isInserted else { continue }
            #expect(!object(index).isDeleted, "object \(index)")
            switch things[index] {
            case .guest(let guest):
                #expect(guest.name == "\(index)" && guest.note == "note \(index)")
                #expect(guest.party.map { ObjectIdentifier($0) } == expected[index].party.map { identity($0) })
                #expect(Set(guest.friends.map { ObjectIdentifier($0) }) == Set(expected[index].friends.map { identity($0) }))
            case .party(let party):
                #expect(party.title == "\(index)")
                let guests = inserted.filter { expected[$0].party == index }
                #expect(Set(party.guests.map { ObjectIdentifier($0) }) == Set(guests.map { identity($0) }))
            }
        }
        let names = Set(inserted.filter { isGuest($0) }.map { "\($0)" })
        let found = try context.fetch(FetchRequest<Guest>())
        #expect(Set(found.map { $0.name }).isSuperset(of: names))
        let deleted = expected.indices.filter { expected[$0].isDeleted }
        #expect(Set(found.map { ObjectIdentifier($0) }).isDisjoint(with: deleted.map { identity($0) }))
        #expect(context.insertedObjects.count == inserted.filter { !isSaved($0) }.count)
        #expect(context.deletedObjects.count == deleted.filter { isSaved($0) }.count)
    }

    // MARK: Operations

    private func make(_ random: inout SeededGenerator) {
        let index = things.count
        expected.append(Expected())
        if random.chance(30) {
            var guests: [Int] = []
            if let guest = guest(&random, where: { $0.party == nil }) { guests = [guest] }
            things.append(.party(Party(title: "\(index)", guests: guests.map { self.guest($0) })))
            for guest in guests { setParty(guest, index) }
        } else {
            let party = random.chance(40) ? party(&random) : nil
            let friend = random.chance(30) ? guest(&random) : nil
            things.append(
                .guest(
                    Guest(
                        party: party.map { self.party($0) }, friends: friend.map { [self.guest($0)] } ?? [], name: "\(index)",
                        note: "note \(index)")))
            if let party { setParty(index, party) }
            if let friend { setFriend(index, friend) }
        }
    }

    private func join(_ random: inout SeededGenerator) {
        guard let party = party(&random) else { return }
        // A detached object knows only relationships that were set at its own end, so only inserted guests move.
        guard let guest = guest(&random, where: { $0.party == nil || $0.isInserted }) else { return }
        if random.chance(50) {
            self.guest(guest).party = self.party(party)
        } else {
            self.party(party).guests.append(self.guest(guest))
        }
        setParty(guest, party)
    }

    private func befriend(_ random: inout SeededGenerator) {
        guard let a = guest(&random), let b = guest(&random), a != b else { return }
        if random.chance(50) { guest(a).friends.append(guest(b)) } else { guest(b).admirers.append(guest(a)) }
        setFriend(a, b)
    }

    private func leave(_ random: inout SeededGenerator) {
        guard let guest = guest(&random, where: { $0.isInserted }) else { return }
        self.guest(guest).party = nil
        expected[guest].party = nil
    }

    private func delete(_ context: ManagedObjectContext, _ random: inout SeededGenerator) {
        guard let index = things.indices.filter({ expected[$0].isInserted }).randomElement(using: &random) else { return }
        switch things[index] {
        case .guest(let guest): context.delete(guest)
        case .party(let party): context.delete(party)
        }
        expected[index] = Expected(isDeleted: true, formerParty: expected[index].party)
        for other in expected.indices {
            expected[other].friends.remove(index)
            if expected[other].party == index { expected[other].party = nil }
        }
    }

    /// Inserts a deleted object again (S048). A saved guest is in its party again, if that exists. A guest or a party that was never saved
    /// may have another id, with which the guest is in no party.
    private func insertAgain(_ context: ManagedObjectContext, _ random: inout SeededGenerator) {
        guard let index = things.indices.filter({ expected[$0].isDeleted }).randomElement(using: &random) else { return }
        let former = expected[index].formerParty
        expected[index] = Expected(isInserted: true)
        switch things[index] {
        case .guest(let guest):
            context.insert(guest)
            guard let former, expected[former].isInserted else { return }
            if isSaved(index) && isSaved(former) || guest.party != nil { expected[index].party = former }
        case .party(let party): context.insert(party)
        }
    }

    // MARK: The plain model

    private func isSaved(_ index: Int) -> Bool { index < saved.count && saved[index].isInserted }

    private func setParty(_ guest: Int, _ party: Int) {
        expected[guest].party = party
        relate(guest, party)
    }

    private func setFriend(_ a: Int, _ b: Int) {
        expected[a].friends.insert(b)
        relate(a, b)
    }

    private func relate(_ a: Int, _ b: Int) {
        if expected[a].isInserted != expected[b].isInserted { insert(expected[a].isInserted ? b : a) }
    }

    private func insert(_ index: Int) {
        var waiting = [index]
        while let next = waiting.popLast() {
            guard !expected[next].isInserted else { continue }
            expected[next].isInserted = true
            waiting += expected[next].friends
            if let party = expected[next].party { waiting.append(party) }
            waiting += expected.indices.filter { expected[$0].party == next || expected[$0].friends.contains(next) }
        }
    }

    // MARK: Access

    private func any(_ random: inout SeededGenerator) -> Int? {
        things.indices.filter { isUsable($0) }.randomElement(using: &random)
    }

    private func isUsable(_ index: Int) -> Bool { !gone.contains(index) && !expected[index].isDeleted }

    private func guest(_ random: inout SeededGenerator, where fits: (Expected) -> Bool = { _ in true }) -> Int? {
        things.indices.filter { isUsable($0) && isGuest($0) && fits(expected[$0]) }.randomElement(using: &random)
    }

    private func party(_ random: inout SeededGenerator) -> Int? {
        things.indices.filter { isUsable($0) && !isGuest($0) }.randomElement(using: &random)
    }

    private func isGuest(_ index: Int) -> Bool {
        if case .guest = things[index] { true } else { false }
    }

    private func guest(_ index: Int) -> Guest {
        guard case .guest(let guest) = things[index] else { preconditionFailure("not a guest") }
        return guest
    }

    private func party(_ index: Int) -> Party {
        guard case .party(let party) = things[index] else { preconditionFailure("not a party") }
        return party
    }

    private func object(_ index: Int) -> ManagedObject {
        switch things[index] {
        case .guest(let guest): guest.managedObject
        case .party(let party): party.managedObject
        }
    }

    private func identity(_ index: Int) -> ObjectIdentifier {
        switch things[index] {
        case .guest(let guest): ObjectIdentifier(guest)
        case .party(let party): ObjectIdentifier(party)
        }
    }
}
