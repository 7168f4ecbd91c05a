package demo

// The vocabulary of BenchCall. '#' becomes a number, '@' a name.

var benchNames = []string{
	"Abigail", "Benoit", "Carlos", "Daria", "Elif", "Farid", "Greta", "Hiroshi", "Ingrid", "Jonas", "Kofi", "Laila",
	"Mateo", "Nadia", "Olga", "Pavel", "Quentin", "Rosa", "Samir", "Tara", "Ulrich", "Vera", "Wanda", "Yusuf",
	"Northgate", "Riverside", "Hillcrest", "Fairview", "Kingsport", "Ashford", "Belmont", "Clifton",
}

var benchOpeners = []string{
	"Well,", "Right, so", "Okay,", "Honestly,", "As far as I can tell", "Just to be sure,", "Before we go on,", "Let me see,",
	"To answer your question,", "On the other hand,", "In that case", "If I understand correctly,", "The thing is,", "Yes,", "No,",
	"Sorry,", "For what it is worth,", "Going by the record,", "Since last week", "According to @,", "When I checked,",
	"After the update", "Apparently", "This time", "From what I see here,", "Good news:",
}

var benchMiddles = []string{
	"the courier left the package with", "my account still shows a balance of # for", "the technician could not reach",
	"somebody cancelled reservation # without telling", "I would like to change the delivery address for", "your invoice number # was already sent to",
	"we moved the appointment to a quarter past nine with", "the kitchen ordered # boxes through", "the insurance wants another signature from",
	"there is a second payment of # dollars from", "the battery was replaced in spring by", "I spoke about exactly this problem with",
	"the website keeps rejecting the password of", "our records mention a discount of # percent for", "the replacement part is waiting at",
	"the train from @ was late because of", "a colleague promised to call back about", "the warranty still covers everything except",
	"the doctor asked for the results of", "the room on floor # was double booked by", "the landlord has not repaired",
	"my daughter forgot her jacket near", "the router blinks red whenever we restart", "nobody warned us about the fee of # for",
	"the contract renews by itself unless we hear from", "the ticket with reference # belongs to", "a refund was approved yesterday by",
	"the shop in @ ran out of", "the driver asked twice for directions to", "it takes # minutes to walk over to",
	"the form does not accept the postcode of", "we can hold the table until eight for", "the meter reading of # looks too high for",
	"the upgrade includes free parking at", "the manager on duty will personally look after", "the subscription was paused in March by",
	"our lawyer recommends waiting for", "the children prefer the early bus to", "the voucher number # expired before",
	"the pharmacy needs a new prescription from", "the alarm went off again during", "the seats in row # are reserved for",
	"the translation arrived without the last pages of", "the loan officer requested payslips from", "a neighbour signed for the parcel from",
	"the water pressure dropped right after", "the gym charged # twice for", "the hotel upgraded us thanks to",
	"the florist mixed up the card meant for", "my brother already paid half of the deposit for", "the elevator stopped twice between floors because of",
	"we can waive the cleaning charge of # euros for", "the exam results were posted outside", "the plumber suggested replacing the valve next to",
	"your points expire in # days, which affects", "the catering team needs a final headcount from", "it rained through the roof right above",
	"the customs form lists only # of the bottles from", "an update erased the saved routes to", "the nurse will ring back after speaking with",
	"the deadline moved to the end of May because of", "the painter used the wrong shade of green on", "both tyres were changed last autumn by",
	"the choir borrowed our projector for", "a package of # tiles broke during", "the booking shows two adults and a dog for",
	"the bank declined the transfer of # crowns to", "we lost the signal somewhere between here and", "the teacher recommended extra lessons before",
	"the thermostat jumps to # degrees during", "the recipe calls for more sugar than", "our flight was rerouted through @ after",
}

var benchEnds = []string{
	"the office in @", "my sister and her two kids", "the people at the front desk", "a supplier called @", "the second floor of building #",
	"an old address from # years ago", "the evening shift", "customer number #", "the blue suitcase with a broken wheel", "next Thursday at the latest",
	"the spare key under the mat", "the accounting department", "somebody named @ from support", "the parking garage behind the station",
	"the annual inspection in October", "a family of # from @", "the warehouse near the airport", "our mutual friend @", "the chapter about late payments",
	"the previous tenant", "a printer that only makes noise", "the garden fence after the storm", "the emergency number on page #", "the concert on Saturday night",
	"the last three months of the year", "a doctor who speaks Portuguese", "the conference in @", "order # and the one before it", "the heating on the top floor",
	"whoever answered the phone on Monday", "the terms we agreed on in spring", "a very long queue at the counter", "the charity run for # schools",
	"the dentist across the street", "the phone I dropped in the lake", "the kitchen renovation at @", "the missing invoice from August", "a small bakery around the corner",
	"the night train through the mountains", "the committee that meets on Fridays", "the birthday party of @", "the software we stopped using",
	"a window that will not close properly", "the lease for apartment #", "the orchestra rehearsal at noon", "the guide with the yellow umbrella",
	"the bicycle we rented for # days", "the museum shop beside the fountain",
	"the warranty card with serial number #", "my colleague @ from the night team", "the harvest festival by the river", "a broken hinge on the left door",
	"the landlord of flat #", "an unpaid toll near @", "the swimming lessons on Wednesdays", "the antique clock in the hallway", "two unopened tins of paint",
	"the visa interview next month", "everybody who signed up before noon", "the roadworks around exit #", "a grey cat with a red collar", "the refill of my blood pressure tablets",
	"the mayor and his assistant", "the archive in the basement of @", "a strange smell from the dishwasher", "the final payment of # francs", "the ferry at half past six",
	"the puppet theatre in the old town", "the neighbour with the loud drum kit", "an envelope marked urgent", "the software licence for # seats", "the wedding cake with three layers",
}
