import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import ObjectGraph

@Suite struct ErrorTests {
    private struct Plain: Error { var number: Int }

    private static let object = ObjectID(store: StoreIdentity(UUID()), entity: 0, key: 1)

    private static let saves: [SaveError] = [
        .conflicts([]),
        .uniqueConstraint(entity: "Track", properties: ["isrc"], values: ["A"], objects: [object]),
        .deleteDenied(object: object, relationship: "tracks", blocking: [object]),
        .danglingReference(object: object, property: "album", target: object),
        .validation([(object, Plain(number: 1))]),
        .validation([(object, Plain(number: 2))]),
        .willSaveDoesNotSettle(rounds: 3),
        .parentGone(context: "edit"),
        .deferredSavesFailed([]),
    ]

    @Test func `save errors are equal only if their values are`() {
        for (left, one) in Self.saves.enumerated() {
            for (right, other) in Self.saves.enumerated() { #expect((one == other) == (left == right), "\(one), \(other)") }
        }
    }

    @Test func `the one line of an error is its description message and localized text`() {
        for error in Self.saves {
            #expect(error.description == error.message)
            #expect((error as any Error).localizedDescription == error.message)
            if let remedy = error.recoverySuggestion, let reason = error.failureReason {
                #expect(error.message.hasPrefix(reason))
                #expect(error.message.lowercased().hasSuffix(remedy.lowercased()))
            }
        }
        let fetch = FetchError.sortRequired(entity: "Track")
        #expect((fetch as any Error).localizedDescription == fetch.description)
        #expect(fetch.code == .sortRequired)
        #expect(fetch.recoverySuggestion == "Add at least one.")
        let context = ContextError.notAChild(context: "main")
        #expect((context as any Error).localizedDescription == context.description)
    }

    @Test func `the localized text of errors of undo and validation is their description`() {
        let errors: [any Error & CustomStringConvertible] = [
            UndoError.noContext, UndoError.groupIsOpen(context: "edit", levels: 2),
            UndoError.groupTooLarge(context: "edit", limit: 9),
            RuleViolation(
                objectID: Self.object, entity: "Track", property: "title", value: .null, valueText: "nil", rule: .required,
                requirement: "is required"),
            UndecodableAttribute(objectID: Self.object, entity: "Track", property: "place", reason: "Place"),
        ]
        for error in errors { #expect((error as any Error).localizedDescription == error.description) }
    }

    @Test func `the error of a property that is not stored tells what to use instead`() {
        let computed = FetchError.unknownProperty(entity: "Track", property: "of type Int \(RowText.withoutName)")
        #expect(computed.recoverySuggestion == "Use the stored properties that it reads, or filter the objects in Swift.")
        let misspelled = FetchError.unknownProperty(entity: "Track", property: "titel")
        #expect(misspelled.message.hasPrefix("Track has no stored property titel. Check the name."))
    }

    @Test func `the error of a child without its parent tells what to do`() {
        #expect(SaveError.parentGone(context: "edit").recoverySuggestion?.contains("new child") == true)
        #expect(ContextError.objectNotFound(Self.object).description.hasSuffix("fetch it again, or save it first"))
    }

    @Test func `a save error tells its code its objects and its cause`() {
        #expect(Set(Self.saves.map(\.code)).count == 8)
        #expect(Self.saves[4].objectIDs == [Self.object])
        #expect((Self.saves[4].cause as? Plain)?.number == 1)
        #expect(Self.saves[6].cause == nil && Self.saves[6].objectIDs == [])
    }

    @Test func `store errors are equal by code message and cause and not by place`() {
        let error = StoreError(.full, "no room", cause: Plain(number: 1))
        #expect(error == StoreError(.full, "no room", cause: Plain(number: 1)))
        #expect(error != StoreError(.full, "no room", cause: Plain(number: 2)))
        #expect(error != StoreError(.full, "no room"))
        #expect(error != StoreError(.readOnly, "no room", cause: Plain(number: 1)))
        #expect(error != StoreError(.full, "some room", cause: Plain(number: 1)))
        #expect(
            StoreError(.full, "a", cause: StoreError(.damaged, "b")) == StoreError(.full, "a", cause: StoreError(.damaged, "b")))
        #expect(error.location.fileID == "ObjectGraphTests/ErrorTests.swift")
        #expect((error as any Error).localizedDescription == "no room")
    }
}
